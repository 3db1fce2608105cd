#include "scenarios/families/published_csv.hpp"

#include <fmt/format.h>

#include <cmath>

#include "scenarios/tree/csv.hpp"
#include "scenarios/tree/toml_parse.hpp"
#include "scenarios/tree/toml_reader.hpp"
#include "sim/base/files.hpp"
#include "sim/base/text.hpp"

namespace mllmsim::scenarios {
namespace {

bool is_cell(const Node& node) { return node.is<std::string>() || node.find("column"); }

void read_cells(const Node& node, const std::string& key, std::vector<CsvCell>& out,
                Problems& problems) {
  if (!is_cell(node)) {
    if (!node.is<Node::Table>())
      return problems.add(node.position, "points." + key,
                          fmt::format("expected a column's name, found {}", describe(node)));
    for (const auto& [name, value] : node.as<Node::Table>())
      read_cells(value, key + "." + name, out, problems);
    return;
  }
  CsvCell cell;
  cell.key = key.substr(key.find('.') + 1);  // without "set." or "published."
  if (node.is<std::string>()) {
    cell.column = node.as<std::string>();
  } else {
    TableReader reader(node, "points." + key, problems);
    reader.read("column", cell.column);
    cell.scaled = reader.read("times", cell.times, {1e-12, 1e12});
    if (const Node* map = reader.find("map"); map && map->is<Node::Table>()) {
      cell.map = map->as<Node::Table>();
      cell.mapped = true;
    } else if (map) {
      reader.problem("map", "expected a table of what cells stand for");
    }
  }
  out.push_back(std::move(cell));
}

// The names in braces of "{Model} on {#_GPUs}".
template <class Replace>
std::string expand(const std::string& pattern, Replace replace) {
  std::string out;
  for (std::size_t at = 0; at < pattern.size();) {
    const std::size_t open = pattern.find('{', at);
    const std::size_t close = pattern.find('}', open);
    if (open == std::string::npos || close == std::string::npos) return out + pattern.substr(at);
    out += pattern.substr(at, open - at) + replace(pattern.substr(open + 1, close - open - 1));
    at = close + 1;
  }
  return out;
}

std::vector<std::string> columns_of(const CsvMapping& mapping) {
  std::vector<std::string> out;
  expand(mapping.id, [&](const std::string& column) { return out.push_back(column), column; });
  for (const auto& [column, cell] : mapping.where) out.push_back(column);
  for (const auto* list : {&mapping.set, &mapping.published})
    for (const CsvCell& cell : *list) out.push_back(cell.column);
  return out;
}

// A cell's text as the value it stands for; a scaled one must be a number, and stays whole if it
// is.
bool value_of(const CsvCell& cell, const Node& text, Node& out, Problems& problems) {
  const auto& written = text.as<std::string>();
  const auto wrong = [&](const std::string& expected) {
    problems.add(text.position, cell.column,
                 fmt::format("expected {}, found \"{}\"", expected, written));
    return false;
  };
  if (cell.mapped) {
    const auto it = cell.map.find(written);
    if (it == cell.map.end()) {
      std::vector<std::string> names;
      for (const auto& [name, value] : cell.map) names.push_back(name);
      return wrong(one_of(names));
    }
    out.value = it->second.value;
  } else {
    out = parse_value(written, text.position);
  }
  out.position = text.position;
  if (written.empty()) return wrong("a value");
  if (!cell.scaled) return true;
  if (!out.is<std::int64_t>() && !out.is<double>()) return wrong("a number");
  const double number =
      (out.is<double>() ? out.as<double>() : static_cast<double>(out.as<std::int64_t>())) *
      cell.times;
  const bool whole = out.is<std::int64_t>() && number == std::round(number);
  if (whole)
    out.value = static_cast<std::int64_t>(number);
  else
    out.value = number;
  return true;
}

void read_where(const Node& table, CsvMapping& out, Problems& problems) {
  if (!table.is<Node::Table>())
    return problems.add(table.position, "points.where", "expected columns and their cells");
  for (const auto& [column, cell] : table.as<Node::Table>()) {
    if (cell.is<std::string>())
      out.where[column] = cell.as<std::string>();
    else
      problems.add(cell.position, "points.where." + column, "expected a cell's text");
  }
}

}  // namespace

CsvMapping read_csv_mapping(const Node& table, Problems& problems) {
  TableReader reader(table, "points", problems);
  CsvMapping out;
  std::string file;
  reader.require("csv", file);
  out.file = file;
  reader.require("id", out.id);
  if (const Node* where = reader.find("where")) read_where(*where, out, problems);
  if (const Node* set = reader.find("set")) read_cells(*set, "set", out.set, problems);
  if (const Node* published = reader.find("published"))
    read_cells(*published, "published", out.published, problems);
  if (out.published.empty())
    reader.problem("published", "missing: which column has the published figure?");
  return out;
}

std::vector<CsvPoint> read_csv_points(const CsvMapping& mapping, const std::filesystem::path& file,
                                      Problems& problems) {
  std::vector<CsvPoint> out;
  CsvTable table;
  try {
    table = parse_csv(read_file(file, kSmallFile), file.string(), columns_of(mapping));
  } catch (const UserError& e) {
    problems.add(e);
    return out;
  }
  for (const CsvRow& row : table.rows) {
    const auto text = [&](const std::string& column) -> const std::string& {
      return row.cells[table.index_of(column)].as<std::string>();
    };
    bool wanted = true;
    for (const auto& [column, cell] : mapping.where) wanted &= text(column) == cell;
    if (!wanted) continue;
    CsvPoint point;
    point.position = point.set.position = point.published.position = row.position;
    point.id = expand(mapping.id, text);
    const auto fill = [&](const std::vector<CsvCell>& cells, Node& into) {
      for (const CsvCell& cell : cells) {
        Node value;
        if (value_of(cell, row.cells[table.index_of(cell.column)], value, problems))
          into.as<Node::Table>()[cell.key] = std::move(value);
      }
    };
    fill(mapping.set, point.set);
    fill(mapping.published, point.published);
    out.push_back(std::move(point));
  }
  return out;
}

}  // namespace mllmsim::scenarios
