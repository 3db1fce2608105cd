// A small multimodal job on A100 nodes, and a simulation of what a strategy plans for it.
#pragma once

#include <memory>

#include "cost_models/calibration/calibrated_costs.hpp"
#include "sim/account/bubbles.hpp"
#include "sim/account/memory.hpp"
#include "sim/kernel/simulation.hpp"
#include "strategies/job/strategy.hpp"
#include "strategies/lower/lower.hpp"

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

inline void use_defaults(Job& job) {
  for (const OptionSpec& o : find_strategy(job.strategy)->options)
    job.options.try_emplace(o.name, o.default_value);
}

struct Simulated {
  Plan plan;
  Program program;
  Timeline timeline;
  std::vector<DeviceTime> devices;
};

inline Simulated simulate_plan(const Job& job, const Plan& plan, const CostContext& costs) {
  Program program = lower::lower(job, plan, &costs);
  Timeline timeline = simulate(program, costs.network.link_bandwidths());
  auto devices = account(program, timeline);
  return {plan, std::move(program), std::move(timeline), std::move(devices)};
}

// What one needs to cost a job; kept alive together.
struct JobCosts {
  explicit JobCosts(const Job& job)
      : network(job.cluster),
        kernels(read_kernel_costs(MLLMSIM_SOURCE_DIR "/cost_models/calibrations/a100-sxm4-80g.json",
                                  job.cluster)),
        layers(job.model, job.parallelism, job.software, *kernels, job.cluster) {}
  CostContext context() { return {network, *kernels, layers}; }

  Network network;
  std::unique_ptr<KernelCosts> kernels;
  LayerCosts layers;
};

inline Simulated simulate_job(Job job) {
  use_defaults(job);
  JobCosts costs(job);
  const Plan plan = find_strategy(job.strategy)->make()->plan(job, costs.context());
  return simulate_plan(job, plan, costs.context());
}

}  // namespace mllmsim
