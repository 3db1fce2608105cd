// What is computed twice, and in how many bits.
#include <fmt/format.h>

#include "scenarios/read/checker.hpp"

namespace mllmsim::scenarios {

// What Megatron-Core refuses (transformer_config.py, arguments.py), and what would be ignored.
void Checker::recompute() const {
  const RecomputePlan& plan = job_.recompute;
  const auto used = [&](Recompute r) { return plan.llm == r || plan.encoder == r; };
  const auto given = [&](const char* key) { return run_.find(key) != nullptr; };
  for (const char* key : {"recompute_method", "recompute_num_layers"})
    if (given(key) && !used(Recompute::full))
      add(key, "only with recompute = \"full\": selective recompute is of all blocks");
  if (plan.method == RecomputeMethod::block && !given("recompute_num_layers"))
    add("recompute_method", "\"block\" needs recompute_num_layers: how many blocks recompute");
  if (given("recompute_method") && !plan.layers_per_stage.empty())
    add("recompute.layers_per_stage", "says which blocks recompute, as recompute_method does");
  if (plan.in_units() && !plan.layers_per_stage.empty())
    add("recompute.layers_per_stage", "needs recompute_num_layers 1");
  if (plan.in_units() && job_.parallelism.zero_stage == 3)
    add("recompute_num_layers",
        "blocks that recompute together would each gather their parameters twice for a backward: "
        "not modelled with zero_stage 3; use 1");
  if (plan.in_units() && job_.software.recompute_early_stop)
    add("recompute_num_layers",
        "of blocks that recompute together only the last would stop early: not modelled with "
        "software.recompute_early_stop; use 1");
  if (!given("recompute_modules")) return;
  if (!used(Recompute::selective))
    return add("recompute_modules", "only with recompute = \"selective\"");
  const Transformer& first = job_.model.llm.blocks;
  bool experts = false;
  for (const Transformer* t : block_kinds(first, job_.model.llm.other_blocks))
    experts |= t->experts.num_experts > 0;
  const auto refuse = [&](RecomputeModule m, bool when, const char* why) {
    if (when && job_.software.recompute_modules.has(m))
      add("recompute_modules", fmt::format("{} {}", name_of(m), why));
  };
  refuse(RecomputeModule::mla_up_proj, !first.latent, "needs latent attention (kv_lora_rank)");
  for (const RecomputeModule m :
       {RecomputeModule::moe, RecomputeModule::moe_act, RecomputeModule::shared_experts})
    refuse(m, !experts, "needs experts");
  const Precision& precision = job_.software.precision;
  const bool delayed = precision.format == NumberFormat::fp8 && !precision.fp8_current_scaling;
  for (const RecomputeModule m : {RecomputeModule::moe_act, RecomputeModule::layernorm})
    refuse(m, delayed, "does not go with fp8 by delayed scaling; set software.fp8_current_scaling");
}

// Transformer Engine's products take blocks of values.
void Checker::precision() const {
  const Precision& precision = job_.software.precision;
  if (!is_quantised(precision.format)) return;
  const auto refuse = [&](bool has, const char* what) {
    if (has)
      add("precision",
          fmt::format("{} is not modelled for {}; bf16 is", name_of(precision.format), what));
  };
  refuse(any_llm_block([](const Transformer& t) { return t.cross_attention; }), "cross-attention");
  const std::int64_t block = precision.format == NumberFormat::fp8         ? 16
                             : precision.format == NumberFormat::fp8_block ? 128
                                                                           : 32;
  const Transformer& t = job_.model.llm.blocks;
  const std::int64_t tp = job_.parallelism.tensor_model_parallel_size;
  const auto blocks_of = [&](std::int64_t width, const char* key) {
    if (width % block != 0)
      add("precision", fmt::format("{} multiplies blocks of {}, and model.llm's {} is {}",
                                   name_of(precision.format), block, key, width));
  };
  blocks_of(t.hidden_size, "hidden_size");
  blocks_of(t.intermediate_size / tp, "intermediate_size / tp");
  if (t.latent)
    blocks_of(t.num_attention_heads / tp * t.latent.v_head_dim,
              "num_attention_heads / tp x v_head_dim");
  else
    blocks_of(t.num_attention_heads / tp * t.head_dim, "num_attention_heads / tp x head_dim");
  for (const Transformer* kind : block_kinds(t, job_.model.llm.other_blocks))
    if (kind->recurrence)
      blocks_of(kind->recurrence.projected() / tp, "recurrence's projection / tp");
  for (const Transformer* kind : block_kinds(t, job_.model.llm.other_blocks))
    if (kind->experts.num_experts > 0)
      blocks_of(kind->experts.moe_intermediate_size / job_.parallelism.expert_tensor_ranks(),
                "moe_intermediate_size / etp");
}

}  // namespace mllmsim::scenarios
