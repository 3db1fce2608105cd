// Two tables of results, column by column: which figures differ, and by how much.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "sim/tables/parquet.hpp"

namespace mllmsim::rerun {

// Of one column; or, with an empty one, of the number of rows.
struct Difference {
  std::string table, column;
  std::size_t rows = 0;         // that differ
  std::string before, now;      // in the first of them; empty where there is no such column
  std::optional<double> share;  // largest |before - now| / max(|before|, |now|); of numbers
};

// Numbers are compared to the last bit. If the tables are not equally long, that is all it says.
std::vector<Difference> differences(const std::string& name, const tables::Table& before,
                                    const tables::Table& now);

}  // namespace mllmsim::rerun
