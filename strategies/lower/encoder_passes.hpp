// Encoders beside the LLM's pipeline: their kernels are issued between the LLM's on the same
// compute and tp streams, in the order the plan says. What feeds what is added as dependencies
// (encoder_transfers.hpp), so an order that starves the LLM shows as a longer step.
//
// In a tensor-parallel bubble (a slot before any but the first kernel of an LLM pass) a kernel runs
// beside a collective of the LLM, and each slows the other; a collective of the encoders there runs
// beside the LLM's next kernels, and takes SMs from them.
#pragma once

#include <optional>
#include <vector>

#include "cost_models/layers/layer_costs.hpp"
#include "strategies/job/cost_context.hpp"
#include "strategies/lower/encoder_kernels.hpp"
#include "strategies/lower/passes.hpp"
#include "strategies/lower/step_builder.hpp"

namespace mllmsim::lower {

// The tasks of one wave on one device, in one direction.
struct WaveTasks {
  TaskId first, last;
};

class EncoderPasses : public IssuedBetween {
 public:
  EncoderPasses(StepBuilder& step, const CostContext& costs);

  // Issues the slots that come before this kernel of the LLM, and those left after all of them.
  Beside issue_before(const Position& llm) override;
  std::uint32_t kernels_until_next(const Position& llm) const override;
  void issue_rest(int replica, int rank);

  const costs::LayerCosts& layer_costs() const { return layers_; }
  std::vector<const MicroBatch*> micro_batches_of(int replica, const EncoderWave& wave) const;
  const WaveTasks& tasks_of(int replica, int rank, std::uint32_t wave, bool forward) const;
  // By layer of the device's stage; nothing if it has no kernel.
  const std::vector<TaskId>& first_forwards(DeviceId device) const {
    return devices_[device.value].first_forward;
  }
  const std::vector<TaskId>& last_backwards(DeviceId device) const {
    return devices_[device.value].last_backward;
  }
  std::vector<TaskId> last_tasks() const;  // by device; may be nothing

 private:
  // A layer of an encoder pass: its kernels, the same slowed, and the memory they take.
  struct Layer {
    KernelRange kernels;
    std::uint32_t slowed = 0;  // the first
    MemoryDeltas memory;
    std::uint32_t layer = 0;  // in its stage
  };
  // A pass of the encoders whose kernels are being issued.
  struct OpenPass {
    std::vector<Layer> layers;
    std::size_t at = 0;        // layer
    std::uint32_t issued = 0;  // of its kernels
    std::size_t slots_left = 0;
    KernelChain chain;
  };
  struct Device {
    std::vector<OpenPass> open;  // by pass of its rank
    std::size_t next_slot = 0;
    std::vector<WaveTasks> waves;  // by wave and direction
    TaskId last;
    std::vector<TaskId> first_forward, last_backward;
  };
  Beside issue_slot(int replica, int rank, const EncoderSlot& slot);
  std::vector<Layer> layers_of(int replica, int rank, const EncoderPass& pass);
  // Up to `count` further kernels of the layer that the pass is at; how many. Adds to `beside`.
  std::uint32_t issue_kernels(Device& device, DeviceId id, const EncoderPass& pass, OpenPass& open,
                              std::uint32_t count, bool tp_bubble, Beside& beside);
  Device& device_of(int replica, int rank) { return devices_[step_.device(replica, rank).value]; }

  StepBuilder& step_;
  const EncoderPlan& plan_;
  double slowdown_;  // of a kernel beside a collective
  std::optional<costs::LayerCosts> own_layers_;
  costs::LayerCosts& layers_;
  bool in_buckets_;  // parameters and gradients of layers are communicated
  std::vector<Kernel> listing_;
  std::vector<Device> devices_;
};

}  // namespace mllmsim::lower
