#include "cost_models/parquet/parquet_measurements.hpp"

#include <fmt/format.h>

#include <cmath>
#include <optional>

#include "cost_models/kernels/names.hpp"
#include "sim/base/errors.hpp"
#include "sim/tables/parquet.hpp"

namespace mllmsim::fit {
namespace {

class MeasurementTable {
 public:
  explicit MeasurementTable(const std::filesystem::path& file)
      : file_(file.string()), table_(tables::read_parquet(file)) {}

  std::size_t rows() const { return table_.table.rows(); }
  bool has(std::string_view column) const { return table_.table.find(column) != nullptr; }
  const std::string& file() const { return file_; }

  std::string source() const {
    const auto found = table_.metadata.find("source");
    return found == table_.metadata.end() ? "" : found->second;
  }

  const std::string& text(std::string_view column, std::size_t row) const {
    return cells<tables::StringColumn>(column, row, "texts")[row];
  }
  std::int64_t whole(std::string_view column, std::size_t row) const {
    return cells<std::vector<std::int64_t>>(column, row, "64-bit whole numbers")[row];
  }
  std::int64_t count(std::string_view column, std::size_t row) const {
    const std::int64_t value = whole(column, row);
    if (value < 1) fail(column, row, fmt::format("expected a number above 0, found {}", value));
    return value;
  }
  Seconds time(std::size_t row) const {
    const double ms = cells<std::vector<double>>("latency", row, "numbers")[row];
    if (!(ms > 0) || !std::isfinite(ms))
      fail("latency", row, fmt::format("expected milliseconds above 0, found {}", ms));
    return {ms * 1e-3};
  }
  Seconds microseconds(std::string_view column, std::size_t row) const {
    const double us = cells<std::vector<double>>(column, row, "numbers")[row];
    if (!(us > 0) || !std::isfinite(us))
      fail(column, row, fmt::format("expected microseconds above 0, found {}", us));
    return {us * 1e-6};
  }
  [[noreturn]] void fail(std::string_view column, std::size_t row, std::string message) const {
    throw UserError(fmt::format("{}: row {}", file_, row + 1), std::string(column),
                    std::move(message));
  }

 private:
  template <class Cells>
  const Cells& cells(std::string_view column, std::size_t row, const char* kind) const {
    const tables::Column* found = table_.table.find(column);
    if (!found) throw UserError(file_, std::string(column), "no such column");
    const auto* values = std::get_if<Cells>(found);
    if (!values)
      throw UserError(file_, std::string(column), fmt::format("expected a column of {}", kind));
    if (table_.table.is_null(column, row)) fail(column, row, "has no value");
    return *values;
  }

  std::string file_;
  tables::ParquetFile table_;
};

std::optional<NumberFormat> format_of(const std::string& dtype) {
  if (dtype == "bfloat16" || dtype == "float16") return NumberFormat::bf16;
  const std::optional<NumberFormat> format = named<NumberFormat>(dtype);
  return format && is_quantised(*format) ? format : std::nullopt;
}

void add_gemm(const MeasurementTable& table, std::size_t row, RawData& raw) {
  const std::optional<NumberFormat> format = format_of(table.text("gemm_dtype", row));
  if (!format)
    table.fail("gemm_dtype", row,
               fmt::format("expected bfloat16, fp8, fp8_block, mxfp8 or nvfp4, found \"{}\"",
                           table.text("gemm_dtype", row)));
  GemmMeasurement g;
  g.kernel = {table.count("m", row), table.count("n", row), table.count("k", row)};
  g.kernel.format = *format;
  g.serving = is_quantised(*format);
  g.time = table.time(row);
  raw.gemm.push_back(g);
}

void add_attention(const MeasurementTable& table, std::size_t row, RawData& raw) {
  const bool causal = table.has("num_key_value_heads");
  if (table.text("attn_dtype", row) != "bfloat16") return;
  if (causal &&
      (table.text("kv_cache_dtype", row) != "bfloat16" || table.whole("window_size", row) != 0))
    return;
  AttentionMeasurement a;
  a.kernel.sequences = {{table.count("isl", row), table.count("batch_size", row)}};
  a.kernel.heads = table.count("num_heads", row);
  a.serving = a.kernel.causal = causal;
  a.kernel.kv_heads = causal ? table.count("num_key_value_heads", row) : a.kernel.heads;
  a.kernel.head_dim = table.count("head_dim", row);
  a.time = table.time(row);
  raw.attention.push_back(a);
}

void add_collective(const MeasurementTable& table, std::size_t row, RawData& raw) {
  const std::string& name = table.text("op_name", row);
  const std::optional<costs::CollectiveOp> op =
      name == "alltoall" ? costs::CollectiveOp::all_to_all : named<costs::CollectiveOp>(name);
  if (!op)
    table.fail(
        "op_name", row,
        fmt::format("expected alltoall or {}, found \"{}\"", choices<costs::CollectiveOp>(), name));
  const std::int64_t ranks = table.count("num_gpus", row);
  if (ranks < 2 || ranks > 1'000'000) table.fail("num_gpus", row, "expected 2 to 1000000");
  const std::string& type = table.text("nccl_dtype", row);
  const std::int64_t width = type == "int8" ? 1 : type == "float" ? kFp32 : kHalf;
  if (width == kHalf && type != "half" && type != "bfloat16")
    table.fail("nccl_dtype", row,
               fmt::format("expected int8, half, bfloat16 or float, found \"{}\"", type));
  raw.collectives.push_back(
      {{*op, Bytes{table.count("message_size", row) * width}, {static_cast<int>(ranks), 1, 1}},
       table.time(row)});
}

// Experts of one rank; layers without a gate and uneven routing are left out.
void add_experts(const MeasurementTable& table, std::size_t row, RawData& raw) {
  if (table.text("distribution", row) != "balanced" ||
      table.text("kernel_source", row).ends_with("nongated"))
    return;
  const std::optional<NumberFormat> format = format_of(table.text("moe_dtype", row));
  if (!format) return;
  const std::int64_t tokens = table.count("num_tokens", row), ep = table.count("moe_ep_size", row);
  const std::int64_t experts = table.count("num_experts", row) / ep;
  const std::int64_t rows = tokens * table.count("topk", row) / ep;
  const std::int64_t width = table.count("inter_size", row) / table.count("moe_tp_size", row);
  if (experts < 1 || rows < 1 || width < 1) return;
  raw.experts.push_back(
      {tokens, rows, experts, table.count("hidden_size", row), width, *format, table.time(row)});
}

// Dispatch and combine of DeepEP, among all GPUs of a node.
void add_exchange(const MeasurementTable& table, std::size_t row, RawData& raw) {
  if (table.count("node_num", row) != 1) return;
  const int ranks = table.text("device", row).find("NVIDIA GB") == std::string::npos ? 8 : 4;
  const double experts = static_cast<double>(table.count("num_experts", row));
  double missed = 1;  // a rank, by an even choice
  for (std::int64_t i = 0; i < table.count("num_topk", row); ++i)
    missed *= std::max(0.0, experts - experts / ranks - static_cast<double>(i)) /
              (experts - static_cast<double>(i));
  for (const bool combine : {false, true}) {
    ExchangeMeasurement x;
    x.kernel.combine = combine;
    x.kernel.hybrid = false;
    x.kernel.tokens = table.count("num_token", row);
    x.kernel.bytes = table.count("hidden_size", row) * kHalf;
    x.kernel.ranks_per_token = ranks * (1 - missed);
    x.kernel.group = {ranks, 1, 1};
    x.sms = static_cast<int>(table.count(combine ? "combine_sms" : "dispatch_sms", row));
    x.time = table.microseconds(combine ? "combine_transmit_us" : "dispatch_transmit_us", row);
    raw.exchanges.push_back(x);
  }
}

using AddRow = void (*)(const MeasurementTable&, std::size_t, RawData&);

AddRow kind_of(const MeasurementTable& table) {
  if (table.has("gemm_dtype") && table.has("m")) return add_gemm;
  if (table.has("isl") && table.has("attn_dtype")) return add_attention;
  if (table.has("op_name") && table.has("num_gpus") && table.has("message_size"))
    return add_collective;
  if (table.has("dispatch_transmit_us")) return add_exchange;
  if (table.has("moe_dtype") && table.has("inter_size")) return add_experts;
  if (table.has("moe_dtype"))
    throw UserError(table.file(), "",
                    "exchanges of experts' tokens by TensorRT-LLM's kernels are not supported");
  throw UserError(table.file(), "", "these columns are not a known table");
}

}  // namespace

RawData read_parquet_measurements(const std::filesystem::path& file) {
  const MeasurementTable table(file);
  const AddRow add = kind_of(table);
  RawData raw;
  for (std::size_t row = 0; row < table.rows(); ++row) {
    const std::string& device = table.text("device", row);
    if (raw.header.gpu.empty()) raw.header.gpu = device;
    if (device != raw.header.gpu)
      table.fail(
          "device", row,
          fmt::format("one file is of one GPU, found \"{}\" after \"{}\"", device, raw.header.gpu));
    add(table, row, raw);
  }
  if (const std::string source = table.source(); !source.empty()) raw.set_source(source);
  return raw;
}

void register_parquet_measurements() { register_raw_format(".parquet", read_parquet_measurements); }

}  // namespace mllmsim::fit
