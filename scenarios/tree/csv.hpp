// A table of comma-separated values (sim/base/csv.hpp) as nodes that remember where they stand.
//
// Lines before the header that begin with # are skipped: a source, a licence. A header may itself
// begin with # ("# GPUs"), so it is the first line that has all wanted columns, or else the first
// line that is no comment.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "scenarios/tree/node.hpp"

namespace mllmsim::scenarios {

struct CsvRow {
  std::vector<Node> cells;  // strings, as many as there are columns
  Position position;
};

struct CsvTable {
  std::vector<std::string> columns;
  std::vector<CsvRow> rows;

  // The column's index; it must be there.
  std::size_t index_of(std::string_view column) const;
};

// Throws UserError with every wanted column that is not there and every row of another length.
CsvTable parse_csv(std::string_view text, const std::string& file,
                   const std::vector<std::string>& wanted);

}  // namespace mllmsim::scenarios
