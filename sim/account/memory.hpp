// What a GPU holds: activations over a simulated step, from the deltas that tasks carry, and what
// does not change during a step (Holdings).
#pragma once

#include <array>
#include <string_view>
#include <vector>

#include "sim/base/enum_names.hpp"
#include "sim/base/units.hpp"
#include "sim/world/software.hpp"

namespace mllmsim {

class Program;
struct Timeline;

struct MemoryPoint {
  Time time{};
  Bytes bytes{};    // from here on
  Bytes working{};  // of these, what a backward works with; forwards left the others
};

// One list per device: a point at each change, starting with (0, 0); beside what is held, and below
// 0 while gradients counted there do not exist yet (Software::grads_start_empty).
// At one instant frees come before allocations. A backward takes what it works with when it starts
// and gives it back with what its forward left; at any time a device runs at most one backward of
// its pipeline and one of encoders beside it.
std::vector<std::vector<MemoryPoint>> memory_profile(const Program& program,
                                                     const Timeline& timeline);

Bytes peak(const std::vector<MemoryPoint>& profile);

// The changes of one device in the order of its tasks, from which its profile follows.
class MemoryChanges {
 public:
  // What a task takes when it starts and, negative, gives back when it ends.
  void add(Time start, Time end, std::int64_t at_start, std::int64_t at_end, bool in_backward,
           bool beside_pipeline);
  std::vector<MemoryPoint> profile();

 private:
  struct Change {
    Time time;
    std::int64_t delta = 0, working = 0;
  };
  std::vector<Change> changes_;
  std::array<std::int64_t, 2> working_{};  // pipeline, encoders
};

// What one GPU holds all step long, by name. All but the last three come from PyTorch's allocator.
enum class Holding : std::uint8_t {
  weights,
  gradients,        // that micro-batches add up in and replicas reduce
  model_gradients,  // beside those, in the parameters' precision
  optimizer,
  buckets,        // copies of gradients that collectives work on
  workspaces,     // of GEMM libraries
  communicators,  // NCCL's buffers, and those in which tp communication overlaps products
  context,        // CUDA's, with the kernels of all libraries
  reserve,
};
inline constexpr std::size_t kHoldings = 9;
template <>
struct Names<Holding> {
  static constexpr std::array<std::string_view, kHoldings> list{
      "weights",    "gradients",     "model_gradients", "optimizer", "buckets",
      "workspaces", "communicators", "context",         "reserve"};
};
constexpr bool in_allocator(Holding h) { return h < Holding::communicators; }

struct Holdings {
  std::array<Bytes, kHoldings> bytes{};

  Bytes& operator[](Holding h) { return bytes[static_cast<std::size_t>(h)]; }
  Bytes operator[](Holding h) const { return bytes[static_cast<std::size_t>(h)]; }
  Holdings& operator+=(const Holdings& other);
  Bytes total() const;
  Bytes allocated() const;  // in PyTorch's allocator
  // Weights, gradients and optimizer: what is a model's own.
  Bytes model_state() const;
};

// Of `parameters` of its own (1/tp of its layers'): weights, gradients and optimizer. zero_stage 1
// shards the optimizer over `ranks`, stage 2 gradients too, stage 3 weights too. Frozen parameters
// are weights only.
Holdings model_state(std::int64_t parameters, std::int64_t trained_parameters, int ranks,
                     int zero_stage, const Software& software);

}  // namespace mllmsim
