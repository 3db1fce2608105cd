#include "cost_models/parquet/parquet_measurements.hpp"

#include <gtest/gtest.h>

#include "sim/base/errors.hpp"
#include "sim/tables/parquet.hpp"
#include "tests/temporary_directory.hpp"

namespace mllmsim {
using namespace costs;
using namespace fit;
namespace {

using tables::StringColumn;
using tables::Table;

StringColumn words(const std::vector<std::string>& values) {
  StringColumn out;
  for (const std::string& v : values) out.push_back(v);
  return out;
}

std::vector<std::int64_t> whole(std::vector<std::int64_t> values) { return values; }
std::vector<double> numbers(std::vector<double> values) { return values; }

RawData read(const Table& table, const tables::Metadata& metadata = {}) {
  const TemporaryDirectory directory;
  const std::filesystem::path file = directory.path() / "t.parquet";
  tables::write_parquet(table, metadata, file);
  register_parquet_measurements();
  return read_raw(file);
}

std::string problem(const Table& table) {
  try {
    read(table);
  } catch (const UserError& e) {
    return e.what();
  }
  return "nothing";
}

Table gemms(const std::string& dtype, double ms = 0.25) {
  return {{{"device", words({"NVIDIA B200"})},
           {"gemm_dtype", words({dtype})},
           {"m", whole({64})},
           {"n", whole({128})},
           {"k", whole({256})},
           {"latency", numbers({ms})}}};
}

TEST(ParquetMeasurements, GemmsKeepTheirFormatAndGpu) {
  const RawData raw = read(gemms("nvfp4"), {{"source", "somewhere, a licence"}});
  EXPECT_EQ(raw.header.gpu, "NVIDIA B200");
  ASSERT_EQ(raw.gemm.size(), 1u);
  EXPECT_EQ(raw.gemm[0].kernel.format, NumberFormat::nvfp4);
  EXPECT_EQ(raw.gemm[0].kernel.n, 128);
  EXPECT_TRUE(raw.gemm[0].serving);  // the engine quantises the input
  EXPECT_DOUBLE_EQ(raw.gemm[0].time.value, 0.25e-3);
  EXPECT_EQ(raw.sources.at("gemm").front(), "somewhere, a licence");
  EXPECT_FALSE(read(gemms("bfloat16")).gemm[0].serving);
}

// Two rows of the same number of values: 2 bytes each of half, 1 of int8.
TEST(ParquetMeasurements, MessageSizesCountValues) {
  const RawData raw = read({{{"device", words({"NVIDIA B200", "NVIDIA B200"})},
                             {"op_name", words({"all_gather", "alltoall"})},
                             {"nccl_dtype", words({"half", "int8"})},
                             {"num_gpus", whole({4, 8})},
                             {"message_size", whole({512, 512})},
                             {"latency", numbers({0.01, 0.02})}}});
  ASSERT_EQ(raw.collectives.size(), 2u);
  EXPECT_EQ(raw.collectives[0].kernel, (Collective{CollectiveOp::all_gather, {1024}, {4, 1, 1}}));
  EXPECT_EQ(raw.collectives[1].kernel, (Collective{CollectiveOp::all_to_all, {512}, {8, 1, 1}}));
}

TEST(ParquetMeasurements, AttentionInBf16WithoutAWindowIsKept) {
  const auto row = [](const char* dtype, std::int64_t window) {
    return Table{{{"device", words({"NVIDIA B200"})},
                  {"batch_size", whole({2})},
                  {"isl", whole({1024})},
                  {"num_heads", whole({32})},
                  {"num_key_value_heads", whole({8})},
                  {"head_dim", whole({128})},
                  {"window_size", whole({window})},
                  {"attn_dtype", words({dtype})},
                  {"kv_cache_dtype", words({"bfloat16"})},
                  {"latency", numbers({0.1})}}};
  };
  const RawData raw = read(row("bfloat16", 0));
  ASSERT_EQ(raw.attention.size(), 1u);
  EXPECT_TRUE(raw.attention[0].kernel.causal && raw.attention[0].serving);
  EXPECT_EQ(raw.attention[0].kernel.kv_heads, 8);
  EXPECT_TRUE(read(row("fp8", 0)).attention.empty());
  EXPECT_TRUE(read(row("bfloat16", 1024)).attention.empty());
}

TEST(ParquetMeasurements, WhatIsWrongIsNamedByRowAndColumn) {
  EXPECT_NE(problem(gemms("int3")).find("row 1: gemm_dtype: expected bfloat16"), std::string::npos);
  EXPECT_NE(problem(gemms("fp8", -1)).find("row 1: latency"), std::string::npos);
  EXPECT_NE(problem({{{"x", whole({1})}}}).find("not a known table"), std::string::npos);
  EXPECT_NE(problem({{{"device", words({"A"})}, {"moe_dtype", words({"fp8"})}}}).find("expert"),
            std::string::npos);
}

TEST(ParquetMeasurements, RawLinesKeepFormats) {
  const RawData raw = read(gemms("fp8_block"));
  const RawData again = parse_raw(to_json_lines(raw), "t.jsonl");
  ASSERT_EQ(again.gemm.size(), 1u);
  EXPECT_EQ(again.gemm[0].kernel, raw.gemm[0].kernel);
  EXPECT_TRUE(again.gemm[0].serving);
}

}  // namespace
}  // namespace mllmsim
