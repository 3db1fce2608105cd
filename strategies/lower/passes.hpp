// Compute and tensor-parallel tasks of each pass, in schedule order, with the memory they take and
// give back. How finely a pass is cut:
//
//   stage granularity    one task; one per layer where layers communicate one by one (below)
//   kernel granularity   one task per kernel, tp collectives on their own stream; named after the
//                        part and the kernel: "encoder qkv", "llm tp all-gather"
//
// Before the layers of a pass there may be a `start`: the CPU's preparation, and the gather of an
// input that came in shards.
#pragma once

#include <map>
#include <vector>

#include "strategies/lower/cost_source.hpp"
#include "strategies/lower/kernel_issue.hpp"
#include "strategies/lower/sharded.hpp"
#include "strategies/lower/step_builder.hpp"

namespace mllmsim::lower {

// One task of the given time per pass.
void add_given_passes(StepBuilder& step, const GivenTimes& times);

// Whether a pass has one task per layer even at stage granularity, because its layers communicate
// one by one: all under zero_stage 3; and on rank 0's chunk 0 (data_parallel.hpp) the first forward
// where gathers overlap, and the last backward where reductions do.
bool by_layer(const Job& job, std::uint32_t micro_batches, int rank, const Pass& pass);

// A place in the order in which a device issues the LLM's kernels: before this kernel of this pass,
// counted in the rank's schedule. Stage granularity has kernel 0 of each pass only.
struct Position {
  int replica = 0, rank = 0;
  std::uint32_t pass = 0, kernel = 0;
};

// Others that issue kernels between the LLM's.
class IssuedBetween {
 public:
  IssuedBetween() = default;
  IssuedBetween(const IssuedBetween&) = delete;
  IssuedBetween& operator=(const IssuedBetween&) = delete;
  virtual ~IssuedBetween() = default;

  // For how long that computes beside a collective of the LLM, and communicates beside its kernels.
  struct Beside {
    Time computing{}, communicating{};
  };
  // Issues what comes before this kernel of the LLM.
  virtual Beside issue_before(const Position& llm) = 0;
  // How many kernels of this pass the LLM issues from here before there is something again.
  virtual std::uint32_t kernels_until_next(const Position& llm) const = 0;
};

class Passes {
 public:
  // between: nobody, if null.
  Passes(StepBuilder& step, const ModelledCosts& costs, ShardedLayers& sharded,
         IssuedBetween* between);
  void add(int replica, int rank);

 private:
  // A device whose passes are being added.
  struct Issuing {
    DeviceId device;
    Position at;
    KernelChain chain;
    Kernel last;  // of the chain
    // Of the layer before, in this pass.
    const costs::LayerCost* cost;
    PlannedLayer cost_of;
  };
  PassTasks add_pass(Issuing& issuing, const Pass& pass);
  // What a stage sends on stays in memory until its backward.
  Bytes kept_output(const Position& at, const Pass& pass) const;
  Bytes missing_gradients(const Position& at) const;
  Bytes made_gradients(const PlannedLayer& layer, const Pass& pass) const;
  MemoryDeltas first_gradients(const Issuing& issuing, const Pass& pass, const Chunk& layers,
                               const ChunkCost& cost) const;
  void copy_gradients(Issuing& issuing, const Pass& pass, const Chunk& layers, Segment& segment);
  TaskId add_start(Issuing& issuing, const Pass& pass);
  IssuedBetween::Beside issue_between(const Position& at) {
    return between_ ? between_->issue_before(at) : IssuedBetween::Beside{};
  }
  Time gather_time(Bytes bytes);
  Segment add_chunk(const Issuing& issuing, const Pass& pass);
  Segment add_layer(const Issuing& issuing, const Chunk& layers, std::size_t i, const Pass& pass);
  // What layer i takes when its pass starts and, negative, gives back when it ends. Blocks that
  // recompute together take what comes back with the last of them and give it back with the first.
  MemoryDeltas deltas(const Issuing& issuing, const Chunk& layers, std::size_t i, const Pass& pass,
                      Bytes saved, Bytes working) const;
  const costs::LayerTotals& totals(const Issuing& issuing, const PlannedLayer& layer,
                                   const Pass& pass) const;
  // Of the LLM's blocks among these.
  std::vector<Bytes> saved_of_blocks(const Issuing& issuing, const Chunk& layers,
                                     const Pass& pass) const;
  Segment add_compute(const Issuing& issuing, const Pass& pass, const ChunkCost& cost,
                      const Chunk& layers);
  // Whether the pass runs together with one of another micro-batch.
  bool beside_another(const Position& at) const;
  void hold_up(Issuing& issuing, const Pass& pass, Time beside);
  void slow_down(Issuing& issuing, const Pass& pass, Time beside, KernelRange kernels);
  // What a pass runs of a layer, the same on all ranks.
  struct LayerKernels {
    PlannedLayer of;
    KernelRange kernels;
    Bytes saved{}, working{};
  };
  LayerKernels layer_kernels(Issuing& issuing, const Chunk& layers, std::size_t i,
                             const Pass& pass);
  LayerKernels list_kernels(Issuing& issuing, const Chunk& layers, std::size_t i, const Pass& pass);
  // kept: what the pass's output adds.
  Segment add_kernels(Issuing& issuing, const Chunk& layers, std::size_t i, const Pass& pass,
                      const MemoryDeltas& kept);
  const costs::LayerCost& kernels(Issuing& issuing, const PlannedLayer& layer, const Pass& pass);

  StepBuilder& step_;
  ModelledCosts costs_;
  ShardedLayers& sharded_;
  IssuedBetween* between_;
  Granularity granularity_;
  bool gradients_appear_;
  std::vector<Kernel> listing_;
  std::vector<std::vector<LayerKernels>> listed_;  // by replica, micro-batch, direction
  std::map<Bytes, Time> gathers_;                  // of inputs that came in shards
};

}  // namespace mllmsim::lower
