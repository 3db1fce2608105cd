// A small multimodal job on A100 nodes, and a simulation of what a strategy plans for it.
#pragma once

#include <memory>

#include "cost_models/calibration/calibrated_costs.hpp"
#include "cost_models/calibration/calibration.hpp"
#include "cost_models/kernels/kernel_costs.hpp"
#include "cost_models/layers/layer_costs.hpp"
#include "strategies/registry/registry.hpp"
#include "strategies/run/job_costs.hpp"
#include "strategies/step/simulate_plan.hpp"

namespace mllmsim {
using namespace costs;
using namespace data;
using namespace lower;

inline Job small_job() {
  Job job;
  job.cluster.nodes = 4;
  job.cluster.gpus_per_node = 4;
  job.cluster.gpu_memory = {80LL << 30};
  job.cluster.nvlink_bandwidth = {300e9};
  job.cluster.nics_per_node = 2;
  job.cluster.nic_bandwidth = {25e9};
  job.cluster.gpu_speed_spread = 0;
  Encoder e;
  e.name = "vit";
  e.blocks = {.num_hidden_layers = 6,
              .hidden_size = 512,
              .num_attention_heads = 8,
              .num_key_value_heads = 8,
              .head_dim = 64,
              .intermediate_size = 2048};
  e.tokens_per_tile = 257;
  e.output_tokens_per_tile = 64;
  e.patch_values = 588;
  e.projector_sizes = {512, 1024};
  job.model.encoders = {e};
  job.model.llm.name = "llm";
  job.model.llm.blocks = {.num_hidden_layers = 8,
                          .hidden_size = 1024,
                          .num_attention_heads = 16,
                          .num_key_value_heads = 8,
                          .head_dim = 64,
                          .intermediate_size = 2816,
                          .gated_mlp = true,
                          .norm = Norm::rms_norm,
                          .rotary = true,
                          .causal = true};
  job.model.llm.vocab_size = 32000;
  job.data.samples = 1e6;
  job.data.tokens_per_sample = 1024;
  job.data.tiles_per_sample = 2;
  job.parallelism.tensor_model_parallel_size = 2;
  job.parallelism.pipeline_model_parallel_size = 4;
  job.parallelism.data_parallel_size = 2;
  job.parallelism.sequence_parallel = true;
  job.parallelism.zero_stage = 1;
  job.parallelism.micro_batch_size = 2;
  job.parallelism.global_batch_size = 32;
  return job;
}

inline void use_defaults(Job& job) { set_defaults(*find_strategy(job.strategy), job.options); }

struct Simulated : SimulatedStep {
  Simulated(SimulatedStep step, Plan of = {})
      : SimulatedStep(std::move(step)), plan(std::move(of)), devices(device_times()) {}

  Plan plan;
  std::vector<DeviceTime> devices;
};

// Read once: properties cost thousands of jobs.
inline const Calibration& a100() {
  static const Calibration calibration =
      read_calibration(MLLMSIM_SOURCE_DIR "/cost_models/calibrations/a100-sxm4-80g.json");
  return calibration;
}

// What one needs to cost a job; kept alive together.
struct JobCosts {
  explicit JobCosts(const Job& job)
      : kernels(kernel_costs(a100(), job.cluster)),
        own(job, *kernels),
        layers(own.context().layers) {}
  CostContext context() { return own.context(); }

  std::unique_ptr<KernelCosts> kernels;
  run::JobCosts own;
  LayerCosts& layers;
};

inline Simulated simulate_job(Job job) {
  use_defaults(job);
  JobCosts costs(job);
  Plan plan = make_plan(job, costs.context());
  SimulatedStep step = simulate_plan(job, plan, costs.context());
  return {std::move(step), std::move(plan)};
}

}  // namespace mllmsim
