// A simulated step beside a trace of the real one: step time, idle shares, and when and how long
// each action ran.
#pragma once

#include <string>
#include <vector>

#include "results/run/run_result.hpp"

namespace mllmsim::analysis {

struct ComparedAction {
  int replica = 0, stage = 0, chunk = 0, micro_batch = 0;  // stage: pipeline rank
  bool forward = true;
  // From the start of the step.
  Seconds predicted_start{}, predicted{}, measured_start{}, measured{};
};

struct LaneFigures {
  int replica = 0, stage = 0;
  double predicted_idle = 0, measured_idle = 0;  // shares of the step
};

struct TraceComparison {
  std::string run, trace;
  Seconds predicted{}, measured{};  // the step
  std::vector<LaneFigures> lanes;
  std::vector<ComparedAction> actions;  // those that both have
  std::size_t only_predicted = 0, only_measured = 0;

  double error() const { return predicted / measured - 1; }
};

// `run` with the spans of a step, `trace` as results::read_trace gives it. Recomputation counts to
// its backward; both parts of a backward that a trace has are one. An action lasts from its first
// kernel to its last, what it waits for in between (tensor-parallel ranks, gathered parameters)
// included, as a trace's does.
TraceComparison compare_trace(const results::RunResult& run, const results::RunResult& trace);

std::string trace_text(const TraceComparison& comparison);
std::string trace_json(const TraceComparison& comparison);

}  // namespace mllmsim::analysis
