// What one run leaves: the rows of the six Parquet tables, before they are written. Plain values;
// nothing here feeds back into a simulation.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "strategies/run/outcome.hpp"

namespace mllmsim::results {

// Rows that hold an outcome's figures as they are.
using StageRow = StageFigures;
using StepRow = StepFigures;
using SpanRow = Span;
using MemoryRow = MemoryChange;
using PathRow = PathPart;

// What a span is called in tables and pictures.
inline std::string_view text_of(const SpanRow& span) {
  return span.kind == SpanKind::bubble ? name_of(span.bubble) : std::string_view(span.name);
}

// The outcome of a simulation, and what was simulated.
struct RunResult : Outcome {
  std::string name, strategy, model, cluster;
  std::string scenario_text;  // as resolved: all files merged, defaults and overrides applied
  std::string scenario_hash, calibration_hash;
  std::string work;  // equal for runs that train the same model on the same samples
  std::uint64_t seed = 0;
  std::string granularity;

  int gpus = 0, tp = 1, pp = 1, vpp = 1, dp = 1, zero_stage = 0;
  std::int64_t micro_batch_size = 0, global_batch_size = 0, micro_batches = 0;
};

}  // namespace mllmsim::results
