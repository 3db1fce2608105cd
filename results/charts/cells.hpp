// Cells of a table as numbers or words.
#pragma once

#include <fmt/format.h>

#include <optional>
#include <string>

#include "sim/base/errors.hpp"
#include "sim/tables/parquet.hpp"

namespace mllmsim::charts {

// Nothing if the column holds words.
inline std::optional<double> number(const tables::Column& column, std::size_t row) {
  if (const auto* v = std::get_if<std::vector<std::int64_t>>(&column))
    return static_cast<double>((*v)[row]);
  if (const auto* v = std::get_if<std::vector<double>>(&column)) return (*v)[row];
  if (const auto* v = std::get_if<std::vector<bool>>(&column)) return (*v)[row] ? 1 : 0;
  return std::nullopt;
}

inline std::string word(const tables::Column& column, std::size_t row) {
  if (const auto* v = std::get_if<std::vector<std::int64_t>>(&column))
    return std::to_string((*v)[row]);
  if (const auto* v = std::get_if<std::vector<double>>(&column))
    return fmt::format("{}", (*v)[row]);
  if (const auto* v = std::get_if<std::vector<bool>>(&column)) return (*v)[row] ? "true" : "false";
  return std::get<tables::StringColumn>(column)[row];
}

// The column of this name; a UserError that lists all if there is none.
inline const tables::Column& column_of(const tables::Table& table, const std::string& name,
                                       const char* option) {
  if (const tables::Column* found = table.find(name)) return *found;
  std::string all;
  for (const auto& [n, c] : table.columns) all += (all.empty() ? "" : ", ") + n;
  throw UserError("command line", option, fmt::format("no column {}; there are {}", name, all));
}

}  // namespace mllmsim::charts
