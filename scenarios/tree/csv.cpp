#include "scenarios/tree/csv.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "scenarios/tree/problems.hpp"
#include "sim/base/errors.hpp"
#include "sim/base/text.hpp"

namespace mllmsim::scenarios {
namespace {

// Takes one line's cells off the front of `text`. A quoted cell ends with its line at the latest.
std::vector<Node> take_line(std::string_view& text, const std::string& file, std::uint32_t line) {
  const std::size_t end = std::min(text.find('\n'), text.size());
  std::string_view rest = text.substr(0, end);
  text.remove_prefix(std::min(end + 1, text.size()));
  if (rest.ends_with('\r')) rest.remove_suffix(1);
  std::vector<Node> cells;
  std::uint32_t column = 1;
  for (;;) {
    Node cell;
    cell.position = {file, line, column};
    std::string value;
    std::size_t at = 0;
    bool quoted = false;
    for (; at < rest.size() && (quoted || rest[at] != ','); ++at) {
      if (rest[at] != '"')
        value += rest[at];
      else if (quoted && at + 1 < rest.size() && rest[at + 1] == '"')
        value += rest[at++];
      else
        quoted = !quoted;
    }
    cell.value = std::string(trimmed(value));
    cells.push_back(std::move(cell));
    if (at == rest.size()) return cells;
    rest.remove_prefix(at + 1);
    column += static_cast<std::uint32_t>(at + 1);
  }
}

bool has(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

bool is_comment(const std::vector<Node>& cells) {
  return cells.front().as<std::string>().starts_with('#');
}

bool is_blank(const std::vector<Node>& cells) {
  return cells.size() == 1 && cells.front().as<std::string>().empty();
}

std::vector<std::string> names_of(const std::vector<Node>& cells) {
  std::vector<std::string> names;
  for (const Node& cell : cells) names.push_back(cell.as<std::string>());
  return names;
}

}  // namespace

std::size_t CsvTable::index_of(std::string_view column) const {
  const auto it = std::find(columns.begin(), columns.end(), column);
  check(it != columns.end(), "parse_csv() checked the columns");
  return static_cast<std::size_t>(it - columns.begin());
}

CsvTable parse_csv(std::string_view text, const std::string& file,
                   const std::vector<std::string>& wanted) {
  if (text.starts_with("\xEF\xBB\xBF")) text.remove_prefix(3);
  CsvTable table;
  Problems problems;
  for (std::uint32_t line = 1; !text.empty(); ++line) {
    std::vector<Node> cells = take_line(text, file, line);
    if (is_blank(cells)) continue;
    const Position position = cells.front().position;
    if (table.columns.empty()) {
      std::vector<std::string> names = names_of(cells);
      const bool complete = std::all_of(wanted.begin(), wanted.end(),
                                        [&](const auto& name) { return has(names, name); });
      if (!complete && is_comment(cells)) continue;
      table.columns = std::move(names);
      for (const std::string& name : wanted)
        if (!has(table.columns, name))
          problems.add(position, name, "no such column" + did_you_mean(name, table.columns));
    } else if (cells.size() != table.columns.size()) {
      problems.add(position, "",
                   fmt::format("expected {} cells, found {}", table.columns.size(), cells.size()));
    } else {
      table.rows.push_back({std::move(cells), position});
    }
  }
  if (table.columns.empty()) problems.add({file, 1, 1}, "", "no header: expected names of columns");
  problems.throw_if_any();
  return table;
}

}  // namespace mllmsim::scenarios
