#include "sim/tables/csv.hpp"

#include <fmt/format.h>

#include "sim/base/csv.hpp"

namespace mllmsim::tables {
namespace {

std::string cell(const std::string& text) { return csv_field(text); }
std::string cell(bool value) { return value ? "true" : "false"; }
std::string cell(double value) { return fmt::format("{}", value); }
std::string cell(std::int64_t value) { return std::to_string(value); }

}  // namespace

std::string to_csv(const Table& table) {
  std::string out;
  const auto line = [&](auto text_of) {
    const char* separator = "";
    for (const auto& column : table.columns) {
      out += separator + text_of(column);
      separator = ",";
    }
    out += "\n";
  };
  line([](const auto& column) { return cell(column.first); });
  for (std::size_t row = 0; row < table.rows(); ++row)
    line([&](const auto& column) -> std::string {
      if (table.is_null(column.first, row)) return "";
      return std::visit([&](const auto& values) { return cell(values[row]); }, column.second);
    });
  return out;
}

}  // namespace mllmsim::tables
