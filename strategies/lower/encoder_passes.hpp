// Encoders beside the LLM's pipeline: their kernels are issued between the LLM's on the same
// compute and tp streams, in the order the plan says. What feeds what is added as dependencies
// (encoder_transfers.hpp), so an order that starves the LLM shows as a longer step.
//
// In a tensor-parallel bubble (a slot before any but the first kernel of an LLM pass) a kernel runs
// beside a collective of the LLM, and each slows the other.
#pragma once

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

class EncoderPasses {
 public:
  EncoderPasses(StepBuilder& step, const CostContext& costs);

  // Issues the slots that come before this kernel of the LLM, and those left after all of them. For
  // how long those in a tensor-parallel bubble compute.
  Time issue_before(const Position& llm);
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
  // A pass of the encoders whose kernels are being issued.
  struct OpenPass {
    std::vector<EncoderKernel> kernels;
    std::size_t issued = 0, slots_left = 0;
  };
  struct Device {
    std::vector<OpenPass> open;  // by pass of its rank
    std::size_t next_slot = 0;
    std::vector<WaveTasks> waves;  // by wave and direction
    TaskId last;
    std::vector<TaskId> first_forward, last_backward;
  };
  Time issue_slot(int replica, int rank, const EncoderSlot& slot);
  Time issue_kernel(Device& device, DeviceId id, const EncoderPass& pass,
                    const EncoderKernel& kernel, bool tp_bubble);
  Device& device_of(int replica, int rank) { return devices_[step_.device(replica, rank).value]; }

  StepBuilder& step_;
  const EncoderPlan& plan_;
  double slowdown_;  // of a kernel beside a collective
  costs::LayerCosts layers_;
  std::vector<Device> devices_;
};

}  // namespace mllmsim::lower
