// The allocations of one GPU over a sequence of steps, each with its own shapes, replayed through a
// model of PyTorch's allocator (sim/account/caching_allocator.hpp): how much it reserves, and
// whether it runs out.
//
// The order is that in which the CPU issues passes, the rank's schedule, so no timeline is needed.
// What is held all step long comes first, one flat buffer a name; then of every pass
//
//   forward    a layer's passing tensors, three alive at a time, and those it saves
//   backward   what recomputes and gradients, until the layer is done; then what was saved is freed
//
// and at the end of a step the copies of gradients that reductions and the optimizer work with.
// Between steps all but what is held is free, in the same blocks as long as nothing more is
// reserved or given back. So a step whose shapes were replayed from the same blocks, and left them,
// would do the same again: it is not replayed.
//
// Tensors that pass in a row of like layers are replayed for the first of them: the others find the
// blocks that it gave back, and so do those of the first if it is plain that there are such.
// Activations that are in the CPU's memory leave and come back where their windows end and begin
// (strategies/lower/activation_offload.hpp). Of blocks that recompute together those of one kind
// count, so a unit of two kinds keeps an input more. Left out: encoders beside the pipeline
// (plan.encoders), whose ranks are not replayed.
#pragma once

#include <optional>
#include <unordered_map>
#include <vector>

#include "cost_models/layers/layer_costs.hpp"
#include "sim/account/caching_allocator.hpp"
#include "sim/kernel/schedule.hpp"
#include "strategies/job/job.hpp"
#include "strategies/job/plan.hpp"
#include "strategies/step/step_end.hpp"

namespace mllmsim::step {

// Where an allocation failed; micro_batch -1: what is held all step long, or the optimizer.
struct RanOut {
  std::int64_t step = 0;
  int micro_batch = -1;
  bool forward = true;
  Bytes allocated{}, reserved{}, asked{};
};

class RankReplay {
 public:
  RankReplay(const Job& job, const Plan& plan, const costs::LayerCosts& layers, int rank);

  // The micro-batches of one replica in one step. False: out of memory, here or before.
  bool step(std::int64_t number, const std::vector<MicroBatch>& micro_batches);

  const CachingAllocator& allocator() const { return allocator_; }
  const std::optional<RanOut>& ran_out() const { return ran_out_; }

 private:
  using Block = CachingAllocator::Block;
  struct Row {  // of like layers
    PlannedLayer planned;
    bool offloading = false;  // the LLM's blocks, where some of them are
    int count = 0;
    int unit = 1;       // that recompute together
    Bytes gathered{};   // zero_stage 3: its parameters while it runs
    Bytes gradients{};  // of one, if they appear in its first backward

    // How many of them save something: all, or the first of each unit.
    int saving() const {
      return planned.recompute != Recompute::full ? count : (count + unit - 1) / unit;
    }
  };
  struct Key {
    std::uint32_t row = 0;
    std::int64_t tokens = 0, sequences = 0, cross_keys = 0;
    bool alike = false;  // the sequences
    bool operator==(const Key&) const = default;
  };
  struct KeyHash {
    std::size_t operator()(const Key& key) const;
  };
  struct Tensors : costs::LayerTensors {
    PassingTensors passing_forward, passing_backward;
  };
  struct Kept {  // by one block
    std::vector<Bytes> tensors;
    std::vector<Block> blocks;  // none while they are in the CPU's memory
  };
  struct SavedRow {
    std::size_t begin = 0;             // of its blocks
    const Tensors* tensors = nullptr;  // none: not remembered
  };
  struct Saved {
    std::vector<Block> blocks;
    std::vector<SavedRow> rows;
    std::vector<Kept> offloading;  // of each of the LLM's blocks, if some are offloaded
  };

  void add_rows(const Job& job, const Chunk& chunk);
  void offload(const Job& job);
  static Tensors with_bounds(costs::LayerTensors tensors);
  const Tensors& tensors(std::uint32_t row, const MicroBatch& mb);
  bool allocate(Bytes bytes, std::vector<Block>& into);
  void free_last(std::vector<Block>& blocks, std::size_t count);
  bool pass_forward(const Row& row, const Tensors& tensors);
  bool save(const Row& row, const Tensors& tensors, Saved& saved);
  bool save_offloading(const Row& row, const Tensors& tensors, Saved& saved);
  bool start_backward(const Row& row, const Tensors& tensors, Saved& saved);
  bool back_through_offloaded(const Row& row, const Tensors& tensors, Saved& saved);
  bool forward(const MicroBatch& mb, std::uint32_t chunk, Saved& saved);
  bool finish_step();
  bool replay(std::int64_t number, const std::vector<MicroBatch>& micro_batches);
  std::uint64_t shapes_of(const std::vector<MicroBatch>& micro_batches) const;
  bool backward(const MicroBatch& mb, std::uint32_t chunk, Saved& saved, bool first);
  Bytes output(const MicroBatch& mb, std::uint32_t chunk) const;

  const Plan& plan_;
  const costs::LayerCosts& layers_;
  const Model& model_;
  int rank_, tp_;
  bool flash_, keeps_outputs_, splits_outputs_;
  StepEnd end_;
  CachingAllocator allocator_;
  std::vector<Row> rows_;
  std::vector<std::pair<std::uint32_t, std::uint32_t>> chunk_rows_;  // first, end
  std::unordered_map<Key, Tensors, KeyHash> known_;
  Tensors latest_;  // of one that is not remembered
  bool gradients_appear_ = false;
  std::vector<int> offload_windows_;  // lower/activation_offload.hpp; none: nothing is offloaded
  std::vector<Block> held_, passing_, gradients_;
  std::vector<Saved> saved_;  // by micro-batch and chunk; empty between steps
  std::vector<Pass> passes_;  // of a step with so many micro-batches
  // By the shapes of steps, the allocator's changes before and after.
  std::unordered_map<std::uint64_t, std::int64_t> changed_nothing_;
  std::optional<RanOut> ran_out_;
};

}  // namespace mllmsim::step
