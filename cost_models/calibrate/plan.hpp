// What a run measures, in which order, and how long that will take.
//
// A list of tasks: shapes a fit needs everywhere (a low-discrepancy cover of m, n, k and typical
// LLM layers), those of a model (--model) and those a simulation asked for (--shapes). The time for
// each measurement follows from the time for all:
//
//   budget = (target - sum of setups and sustained runs) / sum of weights,   within kLeast..kMost
//
// so that a longer list makes a coarser measurement rather than a longer run.
// Nothing here touches a device.
#pragma once

#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include "cost_models/calibrate/measure.hpp"
#include "cost_models/calibrate/task.hpp"

namespace mllmsim::calibrate {

// A transformer whose linear layers and attention are measured; tp divides heads and ffn.
struct ModelShape {
  std::int64_t hidden = 0, ffn = 0, heads = 0, kv_heads = 0, tp = 1;
};
// "hidden,ffn,heads,kv_heads,tp"; throws UserError.
ModelShape parse_model(const std::string& text);

// Roughly what a device does, to estimate repetitions that are longer than the budget.
struct Speed {
  double flops_per_s = 200e12;
  double bytes_per_s = 1e12;
  double setup_s = 0.1;
};

struct PlanOptions {
  bool quick = false;
  std::set<std::string> parts;  // empty: all
  std::vector<ModelShape> models;
  std::vector<Task> shapes;  // first in the plan
  int gpus = 8;              // on each node
  int nodes = 1;
  double target_s = 20 * 60;
  double most_flops = 1e18;  // larger tasks are left out
  double most_bytes = 1e18;
  Speed speed;
};

struct Plan {
  std::vector<Task> tasks;  // each once; those that span nodes first
  double burst_s = 0;       // budget of one measurement
  double sustained_s = 0;
  Speed speed;

  Budget budget(const Task& task) const;
  double estimate_s(const Task& task) const;
  double estimate_s() const;
  // Count and estimate for each part: what --plan prints.
  std::string text() const;
};

Plan make_plan(const PlanOptions& options);

// Lines like those of a raw file, results ignored; a gemm without `pass` stands for all three.
std::vector<Task> read_shapes(const std::filesystem::path& file);

Mode mode(const Task& task);
NumberFormat format(const Task& task);

}  // namespace mllmsim::calibrate
