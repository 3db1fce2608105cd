// Public tables of measured kernels, edited (table_edits.hpp), and a fit to what is read.
#include "cost_models/calibration/estimate.hpp"
#include "cost_models/fit/fit.hpp"
#include "cost_models/parquet/parquet_measurements.hpp"
#include "tests/fuzz/fuzz.hpp"
#include "tests/fuzz/table_edits.hpp"

namespace mllmsim::fuzz {
namespace {

using Integers = std::vector<std::int64_t>;
using Numbers = std::vector<double>;

tables::StringColumn texts(std::initializer_list<const char*> values) {
  tables::StringColumn out;
  for (const char* value : values) out.push_back(value);
  return out;
}

Files small_tables() {
  const tables::StringColumn device = texts({"NVIDIA B200", "NVIDIA B200"});
  const Numbers latency{0.25, 0.5};
  return {{"gemm",
           {{{{"device", device},
              {"gemm_dtype", texts({"bfloat16", "fp8_block"})},
              {"m", Integers{64, 128}},
              {"n", Integers{128, 128}},
              {"k", Integers{256, 512}},
              {"latency", latency}}},
            {{"source", "somewhere"}}}},
          {"attention",
           {{{{"device", device},
              {"batch_size", Integers{2, 4}},
              {"isl", Integers{1024, 2048}},
              {"num_heads", Integers{32, 32}},
              {"num_key_value_heads", Integers{8, 32}},
              {"head_dim", Integers{128, 64}},
              {"window_size", Integers{0, 0}},
              {"attn_dtype", texts({"bfloat16", "bfloat16"})},
              {"kv_cache_dtype", texts({"bfloat16", "bfloat16"})},
              {"latency", latency}}},
            {}}},
          {"nccl",
           {{{{"device", device},
              {"op_name", texts({"all_gather", "alltoall"})},
              {"nccl_dtype", texts({"half", "int8"})},
              {"num_gpus", Integers{4, 8}},
              {"message_size", Integers{512, 1 << 20}},
              {"latency", latency}}},
            {}}}};
}

void read(const std::string& bytes) {
  static EditedDirectory edited(scratch() / "tables", small_tables());
  edited.change(bytes);
  for (const char* name : {"gemm", "attention", "nccl"})
    attempt([&] {
      const fit::RawData raw =
          fit::read_parquet_measurements(scratch() / "tables" / (std::string(name) + ".parquet"));
      if (fit::parse_raw(fit::to_json_lines(raw), "again.jsonl").size() != raw.size())
        throw std::logic_error("measurements that are others when read again");
      constexpr std::size_t kFitted = 100;  // more only take longer
      if (raw.size() <= kFitted)
        fit::fit(raw, costs::estimated_calibration("a gpu", fit::measured_sheet(raw)));
    });
}

const Registered kTarget("measurements", read);

}  // namespace
}  // namespace mllmsim::fuzz
