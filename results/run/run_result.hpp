// What one run leaves: the rows of the seven Parquet tables, before they are written. Plain values;
// nothing here feeds back into a simulation.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "strategies/job/job.hpp"
#include "strategies/run/outcome.hpp"

namespace mllmsim::results {

// Rows that hold an outcome's figures as they are.
using StageRow = StageFigures;
using StepRow = StepFigures;
using SpanRow = Span;
using MemoryRow = MemoryChange;
using PathRow = PathPart;

// A kernel of the run that rests on no measurement of its machine.
struct GapRow {
  std::string kernel;  // "gemm 4096 x 6144 x 12288 weight_gradient"
  costs::Source source = costs::Source::estimate;
  double share = 0;  // of the kernel time of a step, all stages
};

// A change with which a run that does not fit would.
struct FitRow {
  std::string change;  // as on the command line
  Seconds iteration{};
  double gpu_days = 0;
  Bytes peak_memory{};
};

// What a span is called in tables and pictures.
inline std::string_view text_of(const SpanRow& span) {
  return span.kind == SpanKind::bubble ? name_of(span.bubble) : std::string_view(span.name);
}

// The outcome of a simulation, and what was simulated.
struct RunResult : Outcome {
  std::string name, strategy, model, cluster;
  std::string scenario_text;  // as resolved: all files merged, defaults and overrides applied
  std::string scenario_hash, calibration_hash;
  std::string data_hash;  // of the data set's samples; empty without one
  std::string work;       // equal for runs that train the same model on the same samples
  std::uint64_t seed = 0;
  Granularity granularity = Granularity::stage;

  int gpus = 0, tp = 1, pp = 1, vpp = 1, cp = 1, dp = 1, zero_stage = 0;
  std::int64_t micro_batch_size = 0, global_batch_size = 0, micro_batches = 0;
  // The few whose measurement would replace most of the estimated time; the largest share first.
  std::vector<GapRow> gaps;
  std::vector<FitRow> would_fit;  // if it does not: `mllmsim run` asks

  // Whether a plan was found and simulated. Otherwise `reason` says why not, and there are no
  // figures; if not even the scenario can be read (a point of a sweep), no sizes either.
  bool feasible() const { return simulated_steps > 0; }
  bool readable() const { return gpus > 0; }
  // Times were given: there are neither FLOPs nor memory to speak of.
  bool without_model() const { return parameters == 0; }
};

}  // namespace mllmsim::results
