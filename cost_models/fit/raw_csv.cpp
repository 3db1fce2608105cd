// Tables of public data sets as raw measurements. The part follows from the columns:
//
//   m,n,k,us                                                                forward GEMM
//   batch_size,isl,num_heads,num_key_value_heads,head_dim[,window_size],us  causal, serving
//   batch_size,isl,num_heads,head_dim,us                                    not causal
//   op,dtype,num_gpus,bytes,us                                              collective, one node
//
// Lines that start with # come first and are kept as the source. Sliding windows are skipped: no
// model asks for them.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "cost_models/fit/raw_data.hpp"
#include "cost_models/kernels/names.hpp"
#include "sim/base/csv.hpp"
#include "sim/base/errors.hpp"
#include "sim/base/text.hpp"

namespace mllmsim::fit {
namespace {

// "# source: where it comes from" less what only marks it.
std::string_view without_mark(std::string_view comment) {
  constexpr std::string_view kMark = "source: ";
  comment.remove_prefix(std::min(comment.find_first_not_of("# "), comment.size()));
  if (comment.starts_with(kMark)) comment.remove_prefix(kMark.size());
  return comment;
}

class Row {
 public:
  Row(const std::vector<std::string>& columns, const std::vector<CsvField>& cells,
      std::string where)
      : columns_(columns), cells_(cells), where_(std::move(where)) {
    if (cells_.size() != columns_.size())
      throw UserError(where_, "",
                      fmt::format("expected {} cells, found {}", columns_.size(), cells_.size()));
  }
  bool has(std::string_view column) const {
    return std::find(columns_.begin(), columns_.end(), column) != columns_.end();
  }
  const std::string& text(std::string_view column) const {
    const auto at = std::find(columns_.begin(), columns_.end(), column) - columns_.begin();
    return cells_[static_cast<std::size_t>(at)].text;
  }
  std::int64_t count(std::string_view column) const { return number<std::int64_t>(column, 1); }
  std::int64_t integer(std::string_view column) const { return number<std::int64_t>(column, 0); }
  Seconds time() const { return {number<double>("us", 1e-9) * 1e-6}; }
  const std::string& where() const { return where_; }

 private:
  template <class T>
  T number(std::string_view column, T least) const {
    const std::string& cell = text(column);
    const std::optional<T> value = to_number<T>(cell);
    if (!value || !(*value >= least) || !std::isfinite(static_cast<double>(*value)))
      throw UserError(where_, std::string(column), "expected a number, found \"" + cell + "\"");
    return *value;
  }

  const std::vector<std::string>& columns_;
  const std::vector<CsvField>& cells_;
  std::string where_;
};

void add_attention(const Row& row, RawData& raw) {
  if (row.has("window_size") && row.integer("window_size") != 0) return;
  AttentionMeasurement a;
  a.kernel.sequences = {{row.count("isl"), row.count("batch_size")}};
  a.kernel.heads = row.count("num_heads");
  a.serving = a.kernel.causal = row.has("num_key_value_heads");
  a.kernel.kv_heads = a.serving ? row.count("num_key_value_heads") : a.kernel.heads;
  a.kernel.head_dim = row.count("head_dim");
  a.time = row.time();
  raw.attention.push_back(a);
}

void add_collective(const Row& row, RawData& raw) {
  const std::optional<costs::CollectiveOp> op = row.text("op") == "alltoall"
                                                    ? costs::CollectiveOp::all_to_all
                                                    : named<costs::CollectiveOp>(row.text("op"));
  if (!op) throw UserError(row.where(), "op", "expected " + choices<costs::CollectiveOp>());
  const std::int64_t ranks = row.count("num_gpus");
  if (ranks < 2 || ranks > 1'000'000)
    throw UserError(row.where(), "num_gpus", "expected 2 to 1000000");
  raw.collectives.push_back(
      {{*op, Bytes{row.count("bytes")}, {static_cast<int>(ranks), 1, 1}}, row.time()});
}

void add(const Row& row, RawData& raw) {
  if (row.has("m") && row.has("n") && row.has("k")) {
    GemmMeasurement g;
    g.kernel = {row.count("m"), row.count("n"), row.count("k")};
    g.time = row.time();
    raw.gemm.push_back(g);
  } else if (row.has("isl") && row.has("batch_size") && row.has("num_heads") &&
             row.has("head_dim")) {
    add_attention(row, raw);
  } else if (row.has("op") && row.has("num_gpus") && row.has("bytes")) {
    add_collective(row, raw);
  } else {
    throw UserError(row.where(), "", "these columns are not a known table");
  }
}

}  // namespace

RawData parse_raw_csv(const std::string& text, const std::string& file) {
  RawData raw;
  std::vector<std::string> columns;
  std::string source;
  CsvReader reader(text, file);
  for (std::vector<CsvField> cells; reader.next(cells);) {
    const std::string where = fmt::format("{}:{}", file, cells.front().line);
    if (reader.written().starts_with('#')) {
      source += without_mark(reader.written());
    } else if (columns.empty()) {
      for (const CsvField& cell : cells) columns.push_back(cell.text);
      if (std::find(columns.begin(), columns.end(), "us") == columns.end())
        throw UserError(where, "", "expected column names with \"us\" among them");
    } else {
      add(Row(columns, cells, where), raw);
    }
  }
  if (columns.empty()) throw UserError(file, "", "expected a line of column names");
  if (!source.empty()) raw.set_source(source);
  return raw;
}

}  // namespace mllmsim::fit
