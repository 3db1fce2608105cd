// Where a step's time goes, and what would help: a run with its critical path and imbalances, and a
// simulation of each remedy.
//
//   imbalance = slowest / mean          1: all alike
//   gain      = samples per second with the remedy / without - 1
//
// "Balanced data" is the same step with every micro-batch of mean size: what no packing can beat.
//
// Each remedy (remedies.hpp) is the same scenario with something changed, on the same data, run
// like any other; its gain is not an estimate from the path. Remedies are tried one at a time; if
// the run does not fit and no single one helps, two at once. Of a pass over a data set 32 steps,
// spread evenly, stand for all unless data.steps says how many.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "results/run/run_result.hpp"
#include "scenarios/read/scenario.hpp"
#include "sim/base/progress.hpp"

namespace mllmsim::analysis {

struct Remedy {
  std::string name;    // "recompute off"
  std::string change;  // "recompute=none", as on the command line; or what it is in words
  std::optional<results::RunResult> run{};  // none if it does not apply or cannot be planned
  std::string note{};                       // why not; or why the run does not fit
  double gain = 0;
  std::vector<std::string> overrides{};  // of the scenario
  bool same_micro_batches = false;       // a step does the same work in another number of samples
};

struct Explanation {
  results::RunResult run;
  int slowest_stage = 0;            // the one with the most to compute
  double across_stages = 1;         // imbalance of busy time, replicas averaged
  double across_replicas = 1;       // ... of replicas, stages averaged
  double across_micro_batches = 1;  // ... of the micro-batches of one GPU, the worst GPU's
  std::vector<Remedy> remedies;     // those that help most first, those that do not apply last
};

// Reads the scenario with further overrides.
using Read = std::function<scenarios::Scenario(const std::vector<std::string>&)>;

Explanation explain(const Read& read, Progress* progress = nullptr);

// For people and for programs; with the `price` of a GPU-hour they say what runs cost.
std::string explanation_text(const Explanation& explanation, std::optional<double> price = {});
std::string explanation_json(const Explanation& explanation, std::optional<double> price = {});

}  // namespace mllmsim::analysis
