// What every micro-batch costs on every chunk of a plan: layers that are alike are counted, not
// listed, so a whole pass over a data set asks the cost models for each kind of layer once per
// micro-batch. Micro-batches that are equal to the one before share their costs.
#pragma once

#include <cstdint>
#include <vector>

#include "cost_models/layers/layer_costs.hpp"
#include "strategies/job/plan.hpp"

namespace mllmsim::lower {

// Whether two layers cost the same for the same micro-batch.
inline bool alike(const costs::LayerCosts& costs, const PlannedLayer& a, const PlannedLayer& b) {
  return costs.alike(a.layer, b.layer) && a.recompute == b.recompute;
}

// By replica and index: a number that equal micro-batches in a row share, from 0.
std::vector<std::uint32_t> shapes_of(const Plan& plan);

// One pass of one micro-batch through one chunk.
struct ChunkCost {
  costs::KernelTotals forward, backward;  // backward with its recompute
  Bytes saved{};
  // The most that its backward holds above what the forward saved. Layers give back what they saved
  // as the backward leaves them, so with s_i saved by layer i and w_i that its backward works with,
  //   working = max over i of (s_1 + ... + s_i + w_i) - (s_1 + ... + s_n).
  // Blocks that recompute together keep one input; w of the last brings back all of them.
  Bytes working{};
  Time recompute{};  // part of the backward, tp waits aside
};

class PlanCosts {
 public:
  // Costs of the plan's micro-batches, [replica][index]. Keeps `layers`.
  PlanCosts(const Plan& plan, costs::LayerCosts& layers);

  const ChunkCost& chunk(std::size_t replica, std::size_t micro_batch, std::size_t rank,
                         std::size_t chunk) const {
    return costs_[(shape(replica, micro_batch) * ranks_ + rank) * chunks_ + chunk];
  }
  const costs::LayerTotals& layer(std::size_t replica, std::size_t micro_batch,
                                  const PlannedLayer& layer) const;

  // Over all micro-batches and stages.
  struct Sum {
    Flops model_flops{};          // on all tp ranks
    costs::KernelTotals kernels;  // on one
  };
  Sum sum() const;

 private:
  // Layers that cost the same.
  struct Kind {
    PlannedLayer planned;
    int count = 0;
  };
  std::size_t kind_of(const PlannedLayer& layer) const;
  std::size_t shape(std::size_t replica, std::size_t micro_batch) const {
    return shapes_[replica * micro_batches_ + micro_batch];
  }

  void add_totals(const std::vector<const MicroBatch*>& micro_batches, costs::LayerCosts& layers);

  const costs::LayerCosts& layers_;
  std::size_t ranks_, chunks_, micro_batches_;
  std::vector<Kind> kinds_;
  // Layers of one kind in a row.
  struct Run {
    std::size_t kind = 0;
    int count = 0;
    bool behind = false;  // others that they recompute together with
  };
  void add_run(ChunkCost& cost, Bytes& unit, Bytes& most, const costs::LayerTotals& totals,
               const Run& run) const;
  std::vector<std::vector<Run>> chunk_runs_;  // in order
  std::vector<std::uint32_t> shapes_;         // by micro-batch
  std::vector<costs::LayerTotals> totals_;    // by shape and kind
  std::vector<ChunkCost> costs_;              // by shape and chunk
};

}  // namespace mllmsim::lower
