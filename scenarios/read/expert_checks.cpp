// What Megatron asks of experts that are spread over ranks.
#include <fmt/format.h>

#include "scenarios/read/checker.hpp"

namespace mllmsim::scenarios {

void Checker::expert_parallel() const {
  const Parallelism& p = job_.parallelism;
  const Software& s = job_.software;
  const int ep = p.expert_model_parallel_size, etp = p.expert_tensor_ranks();
  const std::string key =
      ep > 1 ? "parallelism.expert_model_parallel_size" : "parallelism.expert_tensor_parallel_size";
  const bool experts =
      any_llm_block([](const Transformer& t) { return t.experts.num_experts > 0; });
  const auto needs = [&](const char* setting, bool used, bool given, const char* what) {
    if (used && !given) add(fmt::format("software.{}", setting), fmt::format("needs {}", what));
  };
  needs("overlap_moe_expert_parallel_comm", s.overlap_moe_expert_parallel_comm,
        p.experts_apart() && ep > 1, "expert_model_parallel_size above 1");
  needs("moe_load_imbalance", s.moe_load_imbalance > 1, ep > 1,
        "expert_model_parallel_size above 1: one rank that has all experts is balanced");
  if (s.moe_load_imbalance > 1 && s.moe_expert_capacity_factor > 0)
    add("software.moe_load_imbalance",
        "with moe_expert_capacity_factor every expert takes the same: give either");
  if (s.overlap_moe_expert_parallel_comm && p.pipeline_model_parallel_size > 1 &&
      p.virtual_pipeline_stages == 1)
    add("software.overlap_moe_expert_parallel_comm",
        "Megatron combines passes in its interleaved schedule only: set "
        "virtual_pipeline_stages");
  if (s.overlap_moe_expert_parallel_comm && s.moe_shared_expert_overlap)
    add("software.moe_shared_expert_overlap",
        "Megatron refuses it with overlap_moe_expert_parallel_comm: exchanges hide once");
  if (!p.experts_apart()) return;
  if (job_.given_times) return add(key, "given times are of whole chunks: 1 is meant");
  if (!experts) return add(key, "the model has no experts");
  const int ranks = p.tensor_model_parallel_size * p.gradient_ranks();
  if (ranks % (ep * etp) != 0)
    add(key, fmt::format("ep {} x etp {} does not divide the {} GPUs of a pipeline stage "
                         "(tp x cp x dp)",
                         ep, etp, ranks));
  if (p.tensor_model_parallel_size > 1 && !p.sequence_parallel)
    add(key,
        "needs sequence_parallel: Megatron routes the tokens that a tensor-parallel rank has of "
        "its own");
  if (p.use_tp_pp_dp_mapping && ep * etp != p.tensor_model_parallel_size * p.context_parallel_size)
    add("parallelism.use_tp_pp_dp_mapping",
        fmt::format("Megatron needs the same pipelines for experts as for the rest: expected ep "
                    "x etp = tp x cp = {}, found {}",
                    p.tensor_model_parallel_size * p.context_parallel_size, ep * etp));
  if (p.data_parallel_replicate_degree > 1 || p.zero_hpz_partition_size > 1)
    add(key,
        "experts are sharded over the ranks that hold the same ones: neither with "
        "data_parallel_replicate_degree nor zero_hpz_partition_size");
  for (const Transformer* t : block_kinds(job_.model.llm.blocks, job_.model.llm.other_blocks)) {
    const Experts& x = t->experts;
    if (x.num_experts == 0) continue;
    if (x.num_experts % ep != 0)
      add("parallelism.expert_model_parallel_size",
          fmt::format("{} does not divide model.llm.num_experts {}", ep, x.num_experts));
    if (x.moe_intermediate_size % etp != 0)
      add("parallelism.expert_tensor_parallel_size",
          fmt::format("{} does not divide model.llm.moe_intermediate_size {}", etp,
                      x.moe_intermediate_size));
    if (s.moe_token_dispatcher != TokenDispatcher::alltoall && etp > 1)
      add("software.moe_token_dispatcher",
          fmt::format("{} sends whole tokens: needs expert_tensor_parallel_size 1, found {}",
                      name_of(s.moe_token_dispatcher), etp));
    break;
  }
}

}  // namespace mllmsim::scenarios
