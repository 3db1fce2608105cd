#include "scenarios/families/row_condition.hpp"

#include <algorithm>

namespace mllmsim::scenarios {

bool RowCondition::holds(const CellText& text) const {
  return std::all_of(cells.begin(), cells.end(), [&](const auto& cell) {
    const std::string& found = text(cell.first);
    return std::any_of(cell.second.begin(), cell.second.end(), [&](const std::string& wanted) {
      return wanted == "*" ? !found.empty() : found == wanted;
    });
  });
}

RowCondition read_row_condition(const Node& table, const std::string& key, Problems& problems) {
  RowCondition out;
  if (!table.is<Node::Table>()) {
    problems.add(table.position, key, "expected columns and their cells");
    return out;
  }
  for (const auto& [column, cell] : table.as<Node::Table>()) {
    std::vector<std::string> texts;
    if (cell.is<std::string>()) texts.push_back(cell.as<std::string>());
    if (cell.is<Node::Array>())
      for (const Node& one : cell.as<Node::Array>())
        if (one.is<std::string>()) texts.push_back(one.as<std::string>());
    const std::size_t asked = cell.is<Node::Array>() ? cell.as<Node::Array>().size() : 1;
    if (texts.empty() || texts.size() != asked)
      problems.add(cell.position, key + "." + column, "expected a cell's text, or a list of them");
    out.cells.emplace_back(column, std::move(texts));
  }
  return out;
}

}  // namespace mllmsim::scenarios
