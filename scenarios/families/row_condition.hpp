// Which rows of a CSV file something is said of, by what their cells are.
//
//   where = { GPU = "a100", Precision = ["amp_bf16", "bf16"], Note = "*" }    "*": not empty
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "scenarios/tree/node.hpp"
#include "scenarios/tree/problems.hpp"

namespace mllmsim::scenarios {

using CellText = std::function<const std::string&(const std::string& column)>;

struct RowCondition {
  std::vector<std::pair<std::string, std::vector<std::string>>> cells;  // column, its texts

  bool holds(const CellText& text) const;
};

// `key` is where the table stands, for problems.
RowCondition read_row_condition(const Node& table, const std::string& key, Problems& problems);

}  // namespace mllmsim::scenarios
