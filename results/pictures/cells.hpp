// Cells of a table as numbers or words.
#pragma once

#include <fmt/format.h>

#include <optional>
#include <string>

#include "results/parquet.hpp"
#include "sim/errors.hpp"

namespace mllmsim {

// Nothing if the column holds words.
inline std::optional<double> number(const Column& column, std::size_t row) {
  if (const auto* v = std::get_if<std::vector<std::int64_t>>(&column))
    return static_cast<double>((*v)[row]);
  if (const auto* v = std::get_if<std::vector<double>>(&column)) return (*v)[row];
  if (const auto* v = std::get_if<std::vector<bool>>(&column)) return (*v)[row] ? 1 : 0;
  return std::nullopt;
}

inline std::string word(const Column& column, std::size_t row) {
  if (const auto* v = std::get_if<std::vector<std::int64_t>>(&column))
    return std::to_string((*v)[row]);
  if (const auto* v = std::get_if<std::vector<double>>(&column))
    return fmt::format("{}", (*v)[row]);
  if (const auto* v = std::get_if<std::vector<bool>>(&column)) return (*v)[row] ? "true" : "false";
  return std::get<StringColumn>(column)[row];
}

// The column of this name; a UserError that lists all if there is none.
inline const Column& column_of(const Table& table, const std::string& name, const char* option) {
  if (const Column* found = table.find(name)) return *found;
  std::string all;
  for (const auto& [n, c] : table.columns) all += (all.empty() ? "" : ", ") + n;
  throw UserError("command line", option, fmt::format("no column {}; there are {}", name, all));
}

}  // namespace mllmsim
