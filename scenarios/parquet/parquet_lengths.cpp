#include "scenarios/parquet/parquet_lengths.hpp"

#include "scenarios/data_sets/data_lengths.hpp"
#include "scenarios/data_sets/data_records.hpp"
#include "sim/base/errors.hpp"
#include "sim/tables/parquet.hpp"

namespace mllmsim::scenarios {
namespace {

void read_parquet_records(const std::filesystem::path& file, std::vector<data::Sample>& out) {
  const tables::Table table = tables::read_parquet(file).table;
  Records records(file, "record", out);
  const auto column = [&](const char* name) -> const std::vector<std::int64_t>* {
    const tables::Column* found = table.find(name);
    if (!found) throw UserError(file.string(), name, "no such column");
    const auto* values = std::get_if<std::vector<std::int64_t>>(found);
    if (!values) throw UserError(file.string(), name, "expected a column of 64-bit whole numbers");
    if (table.nulls.contains(name)) throw UserError(file.string(), name, "has null values");
    return values;
  };
  const auto* tiles = column(kTilesKey);
  const auto* tokens = column(kTokensKey);
  out.reserve(out.size() + table.rows());
  for (std::size_t row = 0; row < table.rows(); ++row)
    records.add({(*tiles)[row], (*tokens)[row]}, row + 1);
  records.throw_if_any();
}

}  // namespace

void register_parquet_lengths() { register_lengths_format(".parquet", read_parquet_records); }

}  // namespace mllmsim::scenarios
