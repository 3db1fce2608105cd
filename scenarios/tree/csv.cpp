#include "scenarios/tree/csv.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "scenarios/tree/problems.hpp"
#include "sim/base/csv.hpp"
#include "sim/base/errors.hpp"
#include "sim/base/text.hpp"

namespace mllmsim::scenarios {
namespace {

bool has(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

Node node_of(const CsvField& field, const std::string& file) {
  Node node;
  node.value = field.text;
  node.position = {file, field.line, field.column};
  return node;
}

}  // namespace

std::size_t CsvTable::index_of(std::string_view column) const {
  const auto it = std::find(columns.begin(), columns.end(), column);
  check(it != columns.end(), "parse_csv() checked the columns");
  return static_cast<std::size_t>(it - columns.begin());
}

CsvTable parse_csv(std::string_view text, const std::string& file,
                   const std::vector<std::string>& wanted) {
  CsvTable table;
  Problems problems;
  CsvReader reader(text, file);
  for (std::vector<CsvField> fields; reader.next(fields);) {
    const Position position{file, fields.front().line, fields.front().column};
    if (table.columns.empty()) {
      std::vector<std::string> names;
      for (const CsvField& field : fields) names.push_back(field.text);
      const bool complete = std::all_of(wanted.begin(), wanted.end(),
                                        [&](const auto& name) { return has(names, name); });
      if (!complete && reader.written().starts_with('#')) continue;
      table.columns = std::move(names);
      for (const std::string& name : wanted)
        if (!has(table.columns, name))
          problems.add(position, name, "no such column" + did_you_mean(name, table.columns));
    } else if (fields.size() != table.columns.size()) {
      problems.add(position, "",
                   fmt::format("expected {} cells, found {}", table.columns.size(), fields.size()));
    } else {
      CsvRow row{{}, position};
      for (const CsvField& field : fields) row.cells.push_back(node_of(field, file));
      table.rows.push_back(std::move(row));
    }
  }
  if (table.columns.empty()) problems.add({file, 1, 1}, "", "no header: expected names of columns");
  problems.throw_if_any();
  return table;
}

}  // namespace mllmsim::scenarios
