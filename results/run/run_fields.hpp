// The columns of every result table, each listed once: Parquet writing, reading back and JSON all
// visit these lists, so names and units cannot drift apart.
//
// each_field(row, visit) calls visit.field(name, value) for what a row holds and
// visit.derived(name, value) for what follows from it and is therefore not read back. What a run
// does not have (figures of one that cannot be planned, times of one that does not fit, memory
// where times are given, padding without a data set) goes to visit.unknown(name, value) of visitors
// that have it; those say with `fits` whether rows of stages and steps are of a run that fits.
// `row` is const when writing, mutable when reading. Names carry their unit: _s, _ns, _bytes,
// _flops; shares and mfu are 0..1. Enums are texts, those of Names.
#pragma once

#include <array>
#include <concepts>
#include <string>
#include <string_view>
#include <type_traits>

#include "cost_models/kernels/names.hpp"
#include "results/run/run_result.hpp"

namespace mllmsim::results {

template <class T, class Row>
concept RowOf = std::is_same_v<std::remove_const_t<T>, Row>;

// One column per value of an enum.
template <NamedEnum Enum>
using ColumnNames = std::array<std::string, Names<Enum>::list.size()>;

template <NamedEnum Enum>
ColumnNames<Enum> column_names(std::string_view before, std::string_view after = "") {
  ColumnNames<Enum> names;
  for (std::size_t k = 0; k < names.size(); ++k)
    names[k].append(before).append(Names<Enum>::list[k]).append(after);
  return names;
}

inline double bubble_share(const RunResult& run) {
  double sum = 0;
  for (double share : run.bubble_shares) sum += share;
  return sum;
}

// Of the whole training run, all GPUs at once.
inline double wall_clock_days(const RunResult& run) {
  return run.gpus > 0 ? run.gpu_days / run.gpus : 0;
}

// Of the whole training run, in the currency of the price.
inline double cost_of(double gpu_days, double price_per_gpu_hour) {
  return gpu_days * 24 * price_per_gpu_hour;
}
inline double cost(const RunResult& run, double price_per_gpu_hour) {
  return cost_of(run.gpu_days, price_per_gpu_hour);
}

inline Seconds bubble_time(const StageRow& stage) {
  Seconds sum{};
  for (Seconds time : stage.bubbles) sum += time;
  return sum;
}

// What every row of every table starts with, so that tables of several runs can be concatenated.
template <class Visitor>
void each_key(RowOf<RunResult> auto& run, Visitor& visit) {
  visit.field("run", run.name);
  visit.field("strategy", run.strategy);
  visit.field("scenario_hash", run.scenario_hash);
}

// A time, or what follows from times: a run that does not fit has none.
template <class Visitor>
void timed_field(Visitor& visit, std::string_view name, auto& value) {
  if constexpr (requires { visit.fits; })
    if (!visit.fits) return visit.unknown(name, value);
  visit.field(name, value);
}
template <class Visitor>
void derived_time(Visitor& visit, std::string_view name, Seconds value) {
  if constexpr (requires { visit.fits; })
    if (!visit.fits) return visit.unknown(name, value);
  visit.derived(name, value);
}

template <class Visitor>
void each_field(RowOf<RunResult> auto& run, Visitor& visit) {
  static const auto bubbles = column_names<BubbleKind>("bubble_share_");
  static const auto sources = column_names<costs::Source>("cost_share_");
  const auto known_if = [&](bool known) {
    return [=, &visit](std::string_view name, auto& value) {
      if constexpr (requires { visit.unknown(name, value); })
        if (!known) return visit.unknown(name, value);
      visit.field(name, value);
    };
  };
  const auto derived_if = [&](bool known, std::string_view name, double value) {
    if constexpr (requires { visit.unknown(name, value); })
      if (!known) return visit.unknown(name, value);
    visit.derived(name, value);
  };
  const auto size = known_if(run.readable());
  const auto figure = known_if(run.feasible());
  const auto of_model = known_if(run.feasible() && !run.without_model());
  const bool runs = run.feasible() && run.fits;
  const auto timed = known_if(runs);
  const auto timed_of_model = known_if(runs && !run.without_model());
  const auto of_pass = known_if(run.feasible() && run.pass_steps > 0);
  visit.field("model", run.model);
  visit.field("cluster", run.cluster);
  visit.field("work", run.work);
  visit.field("calibration_hash", run.calibration_hash);
  size("seed", run.seed);
  size("granularity", run.granularity);
  size("gpus", run.gpus);
  size("tp", run.tp);
  size("pp", run.pp);
  size("vpp", run.vpp);
  size("cp", run.cp);
  size("dp", run.dp);
  size("zero_stage", run.zero_stage);
  size("micro_batch_size", run.micro_batch_size);
  size("global_batch_size", run.global_batch_size);
  size("micro_batches", run.micro_batches);
  of_model("parameters", run.parameters);
  visit.derived("feasible", run.feasible());
  visit.field("fits", run.fits);
  visit.field("reason", run.reason);
  timed("iteration_s", run.iteration);
  visit.field("simulated_steps", run.simulated_steps);
  figure("event_digest", run.event_digest);
  figure("samples", run.samples);
  figure("samples_per_step", run.samples_per_step);
  timed("gpu_days", run.gpu_days);
  derived_if(runs, "days", wall_clock_days(run));
  timed("samples_per_s", run.samples_per_s);
  known_if(runs && run.tokens_per_s_per_gpu > 0)("tokens_per_s_per_gpu", run.tokens_per_s_per_gpu);
  figure("samples_per_micro_batch", run.samples_per_micro_batch);
  of_pass("pass_steps", run.pass_steps);
  of_pass("pad_ratio", run.pad_ratio);
  of_pass("dist_ratio_tiles", run.dist_ratio_tiles);
  of_pass("dist_ratio_tokens", run.dist_ratio_tokens);
  of_model("model_flops", run.model_flops);
  of_model("hardware_flops", run.hardware_flops);
  timed_of_model("mfu", run.mfu);
  timed_of_model("hfu", run.hfu);
  timed_of_model("mfu_6nd", run.mfu_6nd);
  derived_if(runs, "bubble_share", bubble_share(run));
  for (std::size_t k = 0; k < kBubbleKinds; ++k) timed(bubbles[k], run.bubble_shares[k]);
  for (std::size_t i = 0; i < costs::kSources; ++i) of_model(sources[i], run.source_shares[i]);
  of_model("peak_memory_bytes", run.peak_memory);
  figure("gpu_memory_bytes", run.gpu_memory);
}

template <class Visitor>
void each_field(RowOf<StageRow> auto& row, Visitor& visit) {
  static const auto names = column_names<BubbleKind>("bubble_", "_s");
  visit.field("stage", row.stage);
  visit.field("layers", row.layers);
  visit.field("blocks", row.blocks);
  visit.field("recomputed_blocks", row.recomputed_blocks);
  visit.field("parameters", row.parameters);
  timed_field(visit, "forward_s", row.forward);
  timed_field(visit, "backward_s", row.backward);
  timed_field(visit, "busy_s", row.busy);
  derived_time(visit, "bubble_s", bubble_time(row));
  for (std::size_t k = 0; k < kBubbleKinds; ++k) timed_field(visit, names[k], row.bubbles[k]);
  static const auto holdings = column_names<Holding>("", "_bytes");
  for (std::size_t i = 0; i < kHoldings; ++i) visit.field(holdings[i], row.held.bytes[i]);
  visit.field("peak_activations_bytes", row.peak_activations);
  visit.field("saved_activations_bytes", row.saved_activations);
  visit.field("optimizer_step_bytes", row.optimizer_step);
  visit.field("peak_allocated_bytes", row.peak_allocated);
  visit.field("peak_reserved_bytes", row.peak_reserved);
  visit.field("allocator_retries", row.allocator_retries);
  visit.field("peak_memory_bytes", row.peak_memory);
  visit.field("peak_memory_p50_bytes", row.peak_memory_p50);
  visit.field("peak_memory_p99_bytes", row.peak_memory_p99);
}

template <class Visitor>
void each_field(RowOf<StepRow> auto& row, Visitor& visit) {
  visit.field("step", row.step);
  visit.field("replica", row.replica);
  timed_field(visit, "iteration_s", row.iteration);
  visit.field("micro_batches", row.micro_batches);
  visit.field("samples", row.samples);
  visit.field("llm_tokens", row.llm_tokens);
  visit.field("tiles", row.tiles);
  timed_field(visit, "bubble_share", row.bubble_share);
}

template <class Visitor>
void each_field(RowOf<SpanRow> auto& row, Visitor& visit) {
  visit.field("step", row.step);
  visit.field("replica", row.replica);
  visit.field("stage", row.stage);
  visit.field("stream", row.stream);
  visit.field("kind", row.kind);
  if (row.kind == SpanKind::bubble)  // read before, when reading
    visit.field("name", row.bubble);
  else
    visit.field("name", row.name);
  visit.field("micro_batch", row.micro_batch);
  visit.field("chunk", row.chunk);
  visit.field("start_ns", row.start);
  visit.field("end_ns", row.end);
  visit.field("bytes", row.bytes);
}

template <class Visitor>
void each_field(RowOf<MemoryRow> auto& row, Visitor& visit) {
  visit.field("step", row.step);
  visit.field("replica", row.replica);
  visit.field("stage", row.stage);
  visit.field("time_ns", row.time);
  visit.field("memory_bytes", row.bytes);
  visit.field("working_bytes", row.working);
  visit.field("copies_bytes", row.copies);
}

template <class Visitor>
void each_field(RowOf<Fact> auto& row, Visitor& visit) {
  visit.field("key", row.key);
  visit.field("text", row.text);
  visit.field("number", row.number);
}

template <class Visitor>
void each_field(RowOf<GapRow> auto& row, Visitor& visit) {
  visit.field("kernel", row.kernel);
  visit.field("source", row.source);
  visit.field("share", row.share);
}

// A field as one of the four types a column has.
template <class Tag, class Rep>
Rep plain(const Quantity<Tag, Rep>& quantity) {
  return quantity.value;
}
inline double plain(double value) { return value; }
inline bool plain(bool value) { return value; }
inline const std::string& plain(const std::string& value) { return value; }
template <NamedEnum Enum>
std::string plain(Enum value) {
  return std::string(name_of(value));
}
template <std::integral T>
std::int64_t plain(T value) {
  return static_cast<std::int64_t>(value);
}

}  // namespace mllmsim::results
