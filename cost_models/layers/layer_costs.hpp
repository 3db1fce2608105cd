// Kernel -> layer: every layer as the kernels one GPU runs for it, with their times,
// and the memory it keeps.
//
// A layer's cost depends on its shape, the tokens it sees, tp, sequence parallelism, the software
// options and how it recomputes; it is memoised by these. Kernels are in execution order; a
// `communication` kernel runs on the tp stream while compute waits.
//
// Frozen layers have no weight gradients; one that is frozen and whose input needs no gradient has
// an empty backward and keeps nothing.
//
// Only blocks recompute; the other layers ignore it. FLOPs count the whole square of causal
// attention, executed or not, as the usual definitions of MFU and HFU do; of a sliding window twice
// the pairs it has, which is the same count for a window as long as the sequence.
#pragma once

#include <array>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "cost_models/kernels/kernel_costs.hpp"
#include "sim/world/batch.hpp"
#include "sim/world/cluster.hpp"
#include "sim/world/model.hpp"
#include "sim/world/parallelism.hpp"
#include "sim/world/software.hpp"

namespace mllmsim::costs {

struct TimedKernel {
  std::string_view name;  // static text: "qkv", "attention", "tp all-gather"
  bool communication = false;
  Time time{};
  Flops flops{};  // executed on this GPU
  Source source = Source::estimate;
  // An exchange of tokens: what of its time is hidden where the pass of another micro-batch runs
  // beside this one (Software::overlap_moe_expert_parallel_comm).
  Time beside_other_pass{};
  int launches = 1;         // from Python; 0: in a graph
  int expert_launches = 0;  // in C++: by loops over experts, and beside the kernel itself
  // The CPU launches it only when the GPU has done all before: it needs to know how many rows each
  // expert gets.
  bool after_wait = false;
};

// Sums of a kernel list: what one task of stage granularity needs.
struct KernelTotals {
  Time time{};  // communication included
  Time communication{};
  Flops flops{};
  std::array<Time, kSources> by_source{};  // what the time rests on
  Time beside_other_pass{};                // as of kernels
  std::int64_t launches = 0, expert_launches = 0;

  KernelTotals& operator+=(const KernelTotals& other);
};
KernelTotals totals(const std::vector<TimedKernel>& kernels);

struct LayerTotals {
  KernelTotals forward, recompute, backward;
  Flops model_flops{};
  Bytes saved{}, working{}, recomputed{};
};

struct LayerCost {
  std::vector<TimedKernel> forward;
  // What runs again before (full) or within (selective) the backward.
  std::vector<TimedKernel> recompute;
  std::vector<TimedKernel> backward;
  // Of a whole step (forward + backward, no recompute) on all tp ranks, for MFU.
  Flops model_flops{};
  Bytes saved{};  // activations kept on one GPU from forward to backward
  // Further memory on one GPU while its backward runs: what recompute brings back, gradients.
  Bytes working{};
  Bytes recomputed{};  // of that, what recompute brings back
};

LayerTotals totals(const LayerCost& cost);

// Sizes of a layer's tensors on one GPU, in the order in which they are made.
struct LayerTensors {
  std::vector<Bytes> saved;     // from the forward to the backward
  std::vector<Bytes> forward;   // that pass in the forward, a few at a time
  std::vector<Bytes> backward;  // that the backward works with: recomputed, gradients
};

struct Block;
struct LayerSetting;
struct TotalKey;

class LayerCosts {
 public:
  // Throws UserError if tp does not divide the heads of a module that must not pad them.
  LayerCosts(const Model& model, const Parallelism& parallelism, const Software& software,
             const KernelCosts& kernels, const ClusterSpec& cluster);
  LayerCosts(LayerCosts&&) noexcept;

  // All that costs depend on of it. Batch sizes matter only where micro-batches add up gradients,
  // by their number: jobs whose parallelism is the same but for that can share costs.
  static Parallelism known_by(Parallelism parallelism, const Software& software);
  ~LayerCosts();

  // Whether two layers cost the same for the same micro-batch.
  bool alike(const Layer& a, const Layer& b) const {
    return a.kind == b.kind && a.module == b.module && kind_of(a) == kind_of(b);
  }

  // The reference is valid until kRemembered further costs have been computed: packs of an epoch
  // are too many to remember all. Not for concurrent use.
  static constexpr std::size_t kRemembered = 8192;
  const LayerCost& cost(const Layer& layer, const MicroBatch& micro_batch, Recompute recompute);

  // The totals of cost(), exactly, without listing kernels:
  // what changes from pack to pack is only attention.
  LayerTotals total(const Layer& layer, const MicroBatch& micro_batch, Recompute recompute);

  // Of what total() will be asked for: gets it into the caches in two steps, the second with what
  // the first said, some time later.
  std::optional<std::uint64_t> expect_total(const Layer& layer, const MicroBatch& micro_batch,
                                            Recompute recompute) const;
  void fetch_total(std::uint64_t expected) const;

  // Activations that leave `layer` towards the next pipeline stage, for the whole tp group;
  // includes outputs of earlier encoders that only pass through.
  Bytes boundary(const Layer& layer, const MicroBatch& micro_batch) const;
  // Whether tp ranks hold a share of that each; otherwise all of them the whole.
  bool sequence_parallel(const Layer& layer) const;

  LayerTensors tensors(const Layer& layer, const MicroBatch& micro_batch,
                       Recompute recompute) const;

  // Optimizer step over this many parameters of one GPU, with what a step does besides to all whose
  // gradients it holds: zero them, divide them by the number of replicas, copy gathered parameters.
  Time optimizer_step(std::int64_t parameters, std::int64_t held) const;
  // So many weights of one GPU into the format of products, by rows and by columns: once per step,
  // for its first micro-batch. Nothing in bf16, or where parameters are sharded (zero_stage 3):
  // there every pass does it.
  Time quantise_weights(std::int64_t parameters) const;
  // All ranks of the tp group get all of `bytes`.
  Time tp_gather(Bytes bytes) const;

 private:
  struct Memo;
  struct BlockTotals;

  // Blocks of one kind cost the same, but for frozen ones that no gradient leaves.
  std::size_t kind_of(const Layer& layer) const {
    const std::size_t kind = block_kind(model_, layer);
    return !ends_early_ || stream_needs_gradient(model_, layer) ? kind : kind + 256;
  }
  LayerSetting setting_of(const Layer& layer) const;
  LayerSetting setting_of(const Layer& layer, const TokenBatch& batch) const;  // of a block
  std::optional<TotalKey> total_key(const Layer& layer, const MicroBatch& micro_batch,
                                    Recompute recompute) const;
  LayerCost compute(const Layer& layer, const MicroBatch& micro_batch, Recompute recompute);
  LayerCost block_cost(const Layer& layer, const TokenBatch& batch, Recompute recompute);
  const BlockTotals& block_totals(const Layer& layer, const Block& block, const TokenBatch& batch);
  Time on_host(const KernelTotals& pass) const;
  bool host_bound(const KernelTotals& pass) const;
  void wait_for_host(std::initializer_list<std::vector<TimedKernel>*> lists) const;
  bool accumulates_gradients(const LayerSetting& setting) const;
  TimedKernel gradient_accumulation(const Layer& layer) const;
  Flops model_flops(const Layer& layer, const MicroBatch& micro_batch) const;
  std::int64_t image_tokens(const MicroBatch& micro_batch) const;
  std::int64_t deepstack_tokens(const MicroBatch& micro_batch) const;
  TokenBatch encoder_batch(const Layer& layer, const MicroBatch& micro_batch) const;
  void exchange_images(const Layer& layer, const MicroBatch& micro_batch, LayerCost& cost) const;

  const Model& model_;
  Parallelism parallelism_;
  Software software_;
  const KernelCosts& kernels_;
  GroupShape tp_group_, cp_group_;
  int cp_nic_sharers_ = 1;
  GroupShape expert_group_, expert_tp_group_;
  std::int64_t crossing_blocks_ = 0;  // of the LLM, up to the last with cross-attention
  bool ends_early_ = false;           // gradients do, before all blocks of a kind were passed
  std::unique_ptr<Memo> memo_;
};

}  // namespace mllmsim::costs
