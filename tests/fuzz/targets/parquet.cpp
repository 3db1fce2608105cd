// Any bytes as a Parquet file: a table, lengths of samples.
#include "sim/tables/parquet.hpp"

#include "scenarios/data_sets/data_lengths.hpp"
#include "scenarios/parquet/parquet_lengths.hpp"
#include "sim/tables/csv.hpp"
#include "tests/fuzz/fuzz.hpp"

namespace mllmsim::fuzz {
namespace {

void read(const std::string& bytes) {
  static const bool registered = (scenarios::register_parquet_lengths(), true);
  const std::filesystem::path file = scratch_file("table.parquet", bytes);
  if (registered) attempt([&] { scenarios::read_lengths(file); });
  tables::to_csv(tables::read_parquet(file).table);
}

const Registered kTarget("parquet", read);

}  // namespace
}  // namespace mllmsim::fuzz
