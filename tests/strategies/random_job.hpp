// Random jobs for properties: clusters, software, data and parallel sizes, as small as a property
// needs them and as odd as a scenario may say; models are in random_model.hpp.
#pragma once

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <random>

#include "sim/base/errors.hpp"
#include "tests/strategies/random_model.hpp"

namespace mllmsim {

// What the shipped generations of frameworks differ in, in every combination.
inline Software random_software(const Parallelism& p) {
  Software s;
  for (bool* choice : {&s.flash_attention,
                       &s.fused_kernels,
                       &s.fused_norms,
                       &s.gather_qk_norm,
                       &s.dropout,
                       &s.overlap_param_gather,
                       &s.overlap_grad_reduce,
                       &s.reduce_scatter_grads,
                       &s.overlap_tp_backward,
                       &s.overlap_tp_all_reduce,
                       &s.overlap_p2p,
                       &s.scatter_gather_p2p,
                       &s.joint_gate_up,
                       &s.joint_qkv,
                       &s.average_norm_weights,
                       &s.strided_attention,
                       &s.recompute_flash_attention,
                       &s.sequence_parallel_over_tiles,
                       &s.grads_start_empty,
                       &s.ddp_copies,
                       &s.copy_gathered_parameters,
                       &s.clip_grad,
                       &s.zero3_tensor_per_rank,
                       &s.fused_cross_entropy,
                       &s.cuda_graphs,
                       &s.launch_blocking,
                       &s.cuda_graph_attention,
                       &s.cuda_graph_router,
                       &s.rotary_per_sample,
                       &s.moe_fused_grouped_mlp,
                       &s.moe_router_fusion,
                       &s.moe_shared_expert_overlap,
                       &s.memory.keep_stage_outputs,
                       &s.memory.transpose_attention_output,
                       &s.memory.allocator.expandable_segments})
    *choice = random_bool();
  s.flash_attention |= p.context_parallel_size > 1;
  s.split_encoders_over_cp = p.context_parallel_size > 1 && random_bool();
  if (p.expert_tensor_ranks() == 1)
    s.moe_token_dispatcher = *rc::gen::element(TokenDispatcher::alltoall, TokenDispatcher::deepep,
                                               TokenDispatcher::hybridep);
  if (p.expert_model_parallel_size > 1) {
    s.moe_load_imbalance = *rc::gen::element(1.0, 1.5);
    s.overlap_moe_expert_parallel_comm =
        !s.moe_shared_expert_overlap && random_bool() &&
        (p.pipeline_model_parallel_size == 1 || p.virtual_pipeline_stages > 1);
  }
  if (s.moe_load_imbalance == 1) s.moe_expert_capacity_factor = *rc::gen::element(0.0, 1.25);
  s.overlap_tp_forward = p.sequence_parallel && random_bool();
  s.flash_attention_generation = *rc::gen::inRange(0, 3);
  s.ddp_bucket_size = *rc::gen::element(1'000'000, 40'000'000);
  s.zero3_prefetch_layers = *rc::gen::inRange(0, 4);
  s.zero3_collectives_per_layer = *rc::gen::element(1, 4);
  s.zero3_max_reuse_distance = *rc::gen::element(0, 1'000'000);
  s.host_time_per_kernel = Seconds{*rc::gen::element(0.0, 8e-6, 55e-6)};
  s.host_time_per_expert_kernel = Seconds{*rc::gen::element(0.0, 12e-6)};
  s.grad_accumulation_bytes_per_parameter = *rc::gen::element(0, 6, 10, 18);
  s.precision.grad_bytes_per_parameter = *rc::gen::element(2, 4);
  s.precision.sharded_grad_bytes_per_parameter = *rc::gen::element(2, 4);
  s.precision.optimizer_bytes_per_parameter = *rc::gen::element(12, 16);
  s.memory.model_grad_bytes_per_parameter = *rc::gen::element(0, 2);
  s.memory.optimizer_step_bytes_per_parameter = *rc::gen::element(0, 4);
  s.memory.allocator.max_split_size = Bytes{*rc::gen::element(0LL, 128LL << 20)};
  s.memory.allocator.garbage_collection_threshold = *rc::gen::element(0.0, 0.8);
  return s;
}

inline ClusterSpec random_cluster(const Parallelism& p) {
  ClusterSpec c = small_job().cluster;
  c.gpus_per_node = *rc::gen::element(4, 8);
  c.nics_per_node = *rc::gen::element(1, 2, 4);
  c.nodes = (p.world_size() + c.gpus_per_node - 1) / c.gpus_per_node;
  c.topology.kind = *rc::gen::element(TopologyKind::leaf_spine, TopologyKind::rail_optimised);
  c.topology.nodes_per_leaf = *rc::gen::element(1, 2, 32);
  c.topology.spines = *rc::gen::element(1, 2);
  c.topology.oversubscription = *rc::gen::element(1.0, 3.0);
  c.gpu_speed_spread = *rc::gen::element(0.0, 0.015);
  c.host_slowdown = *rc::gen::element(1.0, 2.7);
  c.host_link_bandwidth = {*rc::gen::element(1e9, 64e9)};
  return c;
}

// All samples alike, or a data set whose samples have lengths of their own.
inline Data random_data(const Parallelism& p) {
  Data d = small_job().data;
  d.tokens_per_sample = *rc::gen::inRange(64, 2049);
  d.tiles_per_sample = *rc::gen::element(0.5, 1.0, 2.0);
  if (random_bool()) return d;
  const std::size_t count = static_cast<std::size_t>(p.global_batch_size) * 8;
  auto set = std::make_shared<data::DataSet>();
  std::mt19937 random(*rc::gen::arbitrary<std::uint32_t>());  // one draw: cases stay readable
  for (std::size_t i = 0; i < count; ++i) {
    const auto tiles = static_cast<std::int32_t>(1 + random() % 4);
    set->samples.push_back({tiles, tiles * 64 + static_cast<std::int32_t>(1 + random() % 1000)});
  }
  set->sets = {{"all", 0, count}};
  d.set = set;
  d.samples = static_cast<double>(count);
  d.batching = *rc::gen::element(data::Batching::random, data::Batching::length,
                                 data::Batching::device, data::Batching::isf);
  return d;
}

inline Parallelism random_parallelism(const std::string& strategy) {
  Parallelism p;
  p.tensor_model_parallel_size = *rc::gen::element(1, 2, 4);
  p.pipeline_model_parallel_size = *rc::gen::element(1, 2, 4);
  p.data_parallel_size = *rc::gen::element(1, 2, 3);
  p.virtual_pipeline_stages = p.pipeline_model_parallel_size > 1 ? *rc::gen::inRange(1, 3) : 1;
  p.zero_stage = *rc::gen::element(0, 1, 2);
  if (strategy.find("optimus") == std::string::npos) {
    p.context_parallel_size = *rc::gen::element(1, 1, 2, 4);
    p.cp_comm_type = *rc::gen::element(CpCommType::p2p, CpCommType::all_gather, CpCommType::a2a);
  }
  if (strategy == "zero3" || strategy == "fsdp") {
    p.pipeline_model_parallel_size = p.virtual_pipeline_stages = 1;
    p.zero_stage = 3;
    p.data_parallel_replicate_degree = random_bool() ? p.data_parallel_size : 1;
    p.reshard_after_forward = random_bool();
    if (p.data_parallel_replicate_degree == 1 && p.reshard_after_forward && random_bool())
      p.zero_hpz_partition_size = p.context_parallel_size;
  }
  p.sequence_parallel = random_bool();
  p.use_tp_pp_dp_mapping = random_bool();
  p.micro_batch_size = *rc::gen::element(1, 2);
  p.global_batch_size = p.micro_batch_size * p.data_parallel_size * p.pipeline_model_parallel_size *
                        *rc::gen::inRange(1, 4);
  return p;
}

// Experts in place of MLPs, on ranks of their own where sizes allow.
inline void random_experts(Job& job) {
  Parallelism& p = job.parallelism;
  Transformer& t = job.model.llm.blocks;
  t.experts = {8, 2, t.hidden_size, random_bool() ? t.hidden_size : 0};
  t.parallel_residual = t.shared_norm = false;
  t.adapters.up = t.adapters.down = !t.adapters.use_dora && random_bool();
  const int ranks = p.tensor_model_parallel_size * p.gradient_ranks();
  p.expert_tensor_parallel_size = *rc::gen::element(0, 1);
  const int ep = *rc::gen::element(1, 2, 4, 8);
  if (ranks % (ep * p.expert_tensor_ranks()) == 0) p.expert_model_parallel_size = ep;
  if (!p.experts_apart()) return;
  p.sequence_parallel |= p.tensor_model_parallel_size > 1;
  p.use_tp_pp_dp_mapping = false;
  p.data_parallel_replicate_degree = p.zero_hpz_partition_size = 1;
}

inline Job random_job(const std::string& strategy) {
  Job job = small_job();
  job.strategy = strategy;
  job.parallelism = random_parallelism(strategy);
  job.model = random_model(job.parallelism);
  if (job.model.llm.blocks.has_mlp && *rc::gen::inRange(0, 3) == 0) random_experts(job);
  job.software = random_software(job.parallelism);
  job.cluster = random_cluster(job.parallelism);
  job.data = random_data(job.parallelism);
  const auto recompute = [] {
    return *rc::gen::element(Recompute::none, Recompute::selective, Recompute::full);
  };
  job.recompute.encoder = recompute();
  job.recompute.llm = recompute();
  if (random_bool()) {
    for (int i = 0; i < job.parallelism.pipeline_model_parallel_size; ++i)
      job.recompute.layers_per_stage.push_back(*rc::gen::inRange(0, 4));
  } else {
    job.recompute.method = *rc::gen::element(RecomputeMethod::uniform, RecomputeMethod::block);
    const bool single = job.recompute.method == RecomputeMethod::uniform &&
                        (job.parallelism.zero_stage == 3 || strategy.starts_with("o"));
    job.recompute.num_layers = single ? 1 : *rc::gen::inRange(1, 4);
  }
  job.software.recompute_modules = {};
  for (std::size_t m = 0; m < Names<RecomputeModule>::list.size(); ++m)
    if (random_bool()) job.software.recompute_modules.add(static_cast<RecomputeModule>(m));
  const bool graphs = job.software.cuda_graphs || job.software.cuda_graph_attention ||
                      job.software.cuda_graph_router;
  if (job.parallelism.pipeline_model_parallel_size == 1 && !strategy.starts_with("o") && !graphs &&
      random_bool()) {
    job.recompute.llm = Recompute::none;
    job.recompute.layers_per_stage.clear();
    job.software.cpu_offloading_num_layers =
        *rc::gen::inRange<int>(0, static_cast<int>(job.model.llm.blocks.num_hidden_layers));
  }
  job.granularity = *rc::gen::element(Granularity::stage, Granularity::kernel);
  if (strategy == "baseline")
    job.options["partition"] =
        *rc::gen::element<std::string>("parameters", "layers", "encoder_stage");
  use_defaults(job);
  return job;
}

// What a failure says of its job, for people.
inline std::string text_of(const Job& job) {
  const Parallelism& p = job.parallelism;
  const Software& s = job.software;
  return fmt::format(
      "{}: tp {} pp {} vpp {} cp {} {} ep {} etp {} dp {} zero {} copies {} reshard {} hpz {} sp "
      "{} tp-pp-dp "
      "{}, {} micro-batches of {}{}\n"
      "recompute {} {} [{}] {} {}, {} encoders, {} LLM layers:{}; {} GPUs per node, {} "
      "NICs\n"
      "overlaps: gather {} reduce {} tp backward {} forward {} p2p {}; scatter {} split p2p {}; {} "
      "blocks' activations on the CPU\n",
      job.strategy, p.tensor_model_parallel_size, p.pipeline_model_parallel_size,
      p.virtual_pipeline_stages, p.context_parallel_size, name_of(p.cp_comm_type),
      p.expert_model_parallel_size, p.expert_tensor_ranks(), p.data_parallel_size, p.zero_stage,
      p.data_parallel_replicate_degree, p.reshard_after_forward, p.zero_hpz_partition_size,
      p.sequence_parallel, p.use_tp_pp_dp_mapping, p.micro_batches(), p.micro_batch_size,
      job.data.set ? " of a data set" : "", name_of(job.recompute.encoder),
      name_of(job.recompute.llm), fmt::join(job.recompute.layers_per_stage, " "),
      name_of(job.recompute.method), job.recompute.num_layers, job.model.encoders.size(),
      job.model.llm.blocks.num_hidden_layers, traits_of(job.model), job.cluster.gpus_per_node,
      job.cluster.nics_per_node, s.overlap_param_gather, s.overlap_grad_reduce,
      s.overlap_tp_backward, s.overlap_tp_forward, s.overlap_p2p, s.reduce_scatter_grads,
      s.scatter_gather_p2p, s.cpu_offloading_num_layers);
}

// A job, what it costs and what its strategy plans for it. What a strategy cannot do (more stages
// than layers) is no case.
struct PlannedJob {
  explicit PlannedJob(Job of) : job(std::move(of)), costs(job), plan(plan_or_discard()) {
    RC_LOG() << text_of(job);
  }
  PlannedJob(const PlannedJob&) = delete;

  SimulatedStep simulate() { return simulate_plan(job, plan, costs.context()); }

  const Job job;
  JobCosts costs;
  Plan plan;

 private:
  Plan plan_or_discard() {
    try {
      return make_plan(job, costs.context());
    } catch (const UserError& e) {
      RC_DISCARD(e.what());
    } catch (const std::exception&) {
      RC_LOG() << text_of(job);
      throw;
    }
  }
};

// The plan of another job, costed for this one.
inline SimulatedStep simulate_as(const Job& job, const Plan& plan) {
  JobCosts costs(job);
  return simulate_plan(job, plan, costs.context());
}

// property(name of a strategy), on random jobs.
template <class Property>
void hold_for_every_strategy(const Property& property) {
  for (const Strategy& strategy : strategies())
    EXPECT_TRUE(rc::check(strategy.name, [&] { property(strategy.name); }));
}

}  // namespace mllmsim
