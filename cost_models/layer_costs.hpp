// Kernel -> layer: every layer as the kernels one GPU runs for it, with their times, and the memory
// it keeps.
//
// A layer's cost depends on its shape, the tokens it sees, tp, sequence parallelism, the software
// options and how it recomputes; it is memoised by these. Kernels are in execution order; a
// `communication` kernel runs on the tp stream while compute waits. Frozen layers have no weight
// gradients; a layer whose input needs no gradient has no input gradient; one that needs neither
// has an empty backward and keeps nothing.
#pragma once

#include <map>
#include <memory>
#include <string_view>
#include <vector>

#include "cost_models/kernel_costs.hpp"
#include "sim/batch.hpp"
#include "sim/model.hpp"
#include "sim/parallelism.hpp"

namespace mllmsim {

struct TimedKernel {
  std::string_view name;  // static text: "qkv", "attention", "tp all-gather"
  bool communication = false;
  Time time{};
  Flops flops{};  // executed on this GPU
  Source source = Source::estimate;
};

struct LayerCost {
  std::vector<TimedKernel> forward;
  std::vector<TimedKernel>
      recompute;  // what runs again before (full) or within (selective) the backward
  std::vector<TimedKernel> backward;
  Flops
      model_flops{};  // of a whole step (forward + backward, no recompute) on all tp ranks, for MFU
  Bytes saved{};      // activations kept on one GPU from forward to backward
  Bytes working{};  // further memory on one GPU while its backward runs (what full recompute brings
                    // back)
};

// Sums of a kernel list: what one task of stage granularity needs.
struct KernelTotals {
  Time time{};
  Time communication{};
  Flops flops{};
};
KernelTotals totals(const std::vector<TimedKernel>& kernels);

class LayerCosts {
 public:
  LayerCosts(const Model& model, const Parallelism& parallelism, const Software& software,
             const KernelCosts& kernels, const ClusterSpec& cluster);

  const LayerCost& cost(const Layer& layer, const MicroBatch& micro_batch, Recompute recompute);

  // Activations that leave `layer` towards the next pipeline stage, for the whole tp group;
  // includes outputs of earlier encoders that only pass through.
  Bytes boundary(const Layer& layer, const MicroBatch& micro_batch) const;

  // Optimizer step over this many parameters of one GPU.
  Time optimizer_step(std::int64_t parameters) const;

 private:
  struct Key;
  struct Memo;
  const Model& model_;
  Parallelism parallelism_;
  Software software_;
  const KernelCosts& kernels_;
  GroupShape tp_group_;
  std::shared_ptr<Memo> memo_;
};

}  // namespace mllmsim
