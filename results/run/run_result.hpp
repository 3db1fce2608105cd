// What one run leaves: the rows of the six Parquet tables, before they are written. Plain values;
// nothing here feeds back into a simulation.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "strategies/run/outcome.hpp"

namespace mllmsim::results {

// Rows that hold an outcome's figures as they are.
using StageRow = StageFigures;
using StepRow = StepFigures;
using MemoryRow = MemoryChange;

// One task, or one bubble, of a chosen step.
struct SpanRow {
  std::int64_t step = 0;
  int replica = 0;
  int stage = 0;
  std::string stream;  // "compute", "tp", "pp_send_next", ..., "dp"
  std::string kind;    // "forward", "backward", ..., or "bubble"
  std::string name;    // kernel or chunk name, or the bubble's kind
  int micro_batch = -1;
  int chunk = -1;
  Time start{}, end{};
  Bytes bytes{};  // sent or received
};

// The outcome of a simulation, and what was simulated.
struct RunResult : Outcome {
  std::string name, strategy, model, cluster;
  std::string scenario_text;  // as resolved: all files merged, defaults and overrides applied
  std::string scenario_hash, calibration_hash;
  std::uint64_t seed = 0;
  std::string granularity;

  int gpus = 0, tp = 1, pp = 1, vpp = 1, dp = 1, zero_stage = 0;
  std::int64_t micro_batch_size = 0, global_batch_size = 0, micro_batches = 0;

  std::vector<SpanRow> spans;
};

}  // namespace mllmsim::results
