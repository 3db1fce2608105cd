// Sizes that divide, schedules that exist.
#include <fmt/format.h>

#include <algorithm>

#include "scenarios/read/checker.hpp"
#include "scenarios/read/checks.hpp"
#include "sim/kernel/schedule.hpp"
#include "strategies/run/job_size.hpp"

namespace mllmsim::scenarios {

void Checker::batch() const {
  const Parallelism& p = job_.parallelism;
  const std::int64_t samples = p.micro_batch_size * p.data_parallel_size;
  if (p.global_batch_size % samples != 0)
    add("parallelism.global_batch_size",
        fmt::format("expected a multiple of micro_batch_size {} x data parallel {} = {}, found "
                    "{}",
                    p.micro_batch_size, p.data_parallel_size, samples, p.global_batch_size));
}

void Checker::schedule() const {
  const Parallelism& p = job_.parallelism;
  const int pp = p.pipeline_model_parallel_size;
  if (p.zero_stage == 3 && pp > 1)
    add("parallelism.zero_stage",
        fmt::format("3 needs pipeline_model_parallel_size 1, found {}", pp));
  if (p.virtual_pipeline_stages > 1) {
    if (pp == 1)
      add("parallelism.virtual_pipeline_stages",
          "the interleaved schedule needs pipeline_model_parallel_size above 1");
    else if (p.microbatch_group_size_per_virtual_pipeline_stage > 0)
      micro_batch_groups();
    else if (p.micro_batches() % pp != 0 && !packs_decide())
      add("parallelism.virtual_pipeline_stages",
          fmt::format("the interleaved schedule needs a multiple of pipeline_model_parallel_size "
                      "{} micro-batches, found {}",
                      pp, p.micro_batches()));
  } else if (p.microbatch_group_size_per_virtual_pipeline_stage > 0) {
    add("parallelism.microbatch_group_size_per_virtual_pipeline_stage",
        "needs virtual_pipeline_stages above 1");
  }
  const std::size_t recomputed = job_.recompute.layers_per_stage.size();
  if (recomputed != 0 && recomputed != static_cast<std::size_t>(pp))
    add("recompute.layers_per_stage",
        fmt::format("expected {} numbers, one per pipeline stage, found {}", pp, recomputed));
}

void Checker::micro_batch_groups() const {
  const Parallelism& p = job_.parallelism;
  const std::int64_t group = p.microbatch_group_size_per_virtual_pipeline_stage;
  const int pp = p.pipeline_model_parallel_size;
  if (group > pp && !job_.software.overlap_p2p)
    return add("parallelism.microbatch_group_size_per_virtual_pipeline_stage",
               "groups larger than pipeline_model_parallel_size need software.overlap_p2p: ranks "
               "that exchange in turns would wait for each other for ever");
  if (packs_decide() ? group >= pp : can_be_grouped(p.micro_batches(), group, pp)) return;
  add("parallelism.microbatch_group_size_per_virtual_pipeline_stage",
      fmt::format("expected from pipeline_model_parallel_size {} to the {} micro-batches of a "
                  "pipeline, the last group none or as many as {}; found {}",
                  pp, p.micro_batches(), pp, group));
}

// How many micro-batches a step has is then chosen by the samples in packs.
bool Checker::packs_decide() const {
  return job_.data.equal_batch && data::is_packed(job_.data.batching);
}

void Checker::size() const {
  const double tasks = size_of(job_).tasks;
  if (tasks > kMostTasksPerStep)
    add("parallelism.global_batch_size",
        fmt::format("{} micro-batches of a pipeline are too many: a step has {:.3g} tasks, and at "
                    "most {:.3g} can be simulated",
                    job_.parallelism.micro_batches(), tasks, kMostTasksPerStep));
}

void Checker::given_times() const {
  const int pp = job_.parallelism.pipeline_model_parallel_size;
  const auto check = [&](const char* key, std::size_t found) {
    if (found != 1 && found != static_cast<std::size_t>(pp))
      add(key,
          fmt::format("expected one duration, or {}, one per pipeline stage, found {}", pp, found));
  };
  check("given_times.forward", job_.given_times->forward.size());
  check("given_times.backward", job_.given_times->backward.size());
}

void Checker::layers() const {
  const Parallelism& p = job_.parallelism;
  const std::int64_t chunks =
      std::int64_t{p.pipeline_model_parallel_size} * p.virtual_pipeline_stages;
  const std::int64_t blocks = block_count(job_.model);
  if (chunks > blocks)
    add("parallelism.pipeline_model_parallel_size",
        fmt::format("{} pipeline stages x {} virtual stages are more than the model's {} layers",
                    p.pipeline_model_parallel_size, p.virtual_pipeline_stages, blocks));
}

void Checker::sharding() const {
  const Parallelism& p = job_.parallelism;
  const auto only_sharded = [&](const char* key, bool used) {
    if (used && p.zero_stage != 3)
      add(fmt::format("parallelism.{}", key),
          fmt::format("needs sharded parameters, zero_stage 3; found zero_stage {}", p.zero_stage));
  };
  const int copies = p.data_parallel_replicate_degree, near = p.zero_hpz_partition_size;
  only_sharded("data_parallel_replicate_degree", copies > 1);
  only_sharded("reshard_after_forward", !p.reshard_after_forward);
  only_sharded("zero_hpz_partition_size", near > 1);
  if (p.data_parallel_size % copies != 0)
    add("parallelism.data_parallel_replicate_degree",
        fmt::format("expected a divisor of data parallel {}, found {}", p.data_parallel_size,
                    copies));
  if (near > 1 && p.gradient_ranks() % near != 0)
    add("parallelism.zero_hpz_partition_size",
        fmt::format("expected a divisor of the {} GPUs that parameters are sharded over, found {}",
                    p.gradient_ranks(), near));
  if (near > 1 && (copies > 1 || !p.reshard_after_forward))
    add("parallelism.zero_hpz_partition_size",
        "DeepSpeed's: neither with data_parallel_replicate_degree nor without "
        "reshard_after_forward, which are FSDP's");
}

// As Megatron-Core's TransformerConfig refuses them, and Transformer Engine's context its layers.
void Checker::activation_offload() const {
  const int layers = job_.software.cpu_offloading_num_layers;
  if (layers == 0) return;
  const std::string key = "software.cpu_offloading_num_layers";
  if (job_.given_times) return add(key, "given times are of whole chunks: 0 is meant");
  if (layers >= job_.model.llm.blocks.num_hidden_layers)
    add(key, fmt::format("Megatron-Core offloads fewer than all of the LLM's {} blocks, found {}",
                         job_.model.llm.blocks.num_hidden_layers, layers));
  if (job_.parallelism.pipeline_model_parallel_size > 1)
    add(key, fmt::format("Megatron-Core has no pipelines with it: expected "
                         "pipeline_model_parallel_size 1, found {}",
                         job_.parallelism.pipeline_model_parallel_size));
  if (job_.recompute.llm != Recompute::none || !job_.recompute.layers_per_stage.empty())
    add(key,
        "Megatron-Core does not offload activations that are recomputed: recompute = "
        "\"none\"");
  if (job_.software.cuda_graphs || job_.software.cuda_graph_attention ||
      job_.software.cuda_graph_router)
    add(key,
        "Megatron-Core does not offload what CUDA graphs keep at one place: cuda_graphs, "
        "cuda_graph_attention and cuda_graph_router are to be false");
  if (job_.strategy == "optimus" || job_.strategy == "omnibal+optimus")
    add(key,
        fmt::format("{} runs encoders between the blocks' kernels: expected 0", job_.strategy));
  if (job_.cluster.host_link_bandwidth.value <= 0) add(key, "needs cluster.host_link_bandwidth");
}

void Checker::offload() const {
  if (job_.software.optimizer_offload_fraction == 0) return;
  const std::string key = "software.optimizer_offload_fraction";
  if (job_.parallelism.zero_stage == 0)
    add(key, "needs a sharded optimizer, zero_stage 1 or more: Megatron's and DeepSpeed's do");
  const ClusterSpec& c = job_.cluster;
  if (c.host_link_bandwidth.value <= 0 || c.host_memory_bandwidth.value <= 0)
    add(key, "needs cluster.host_link_bandwidth and cluster.host_memory_bandwidth");
}

void Checker::context_parallel() const {
  const Parallelism& p = job_.parallelism;
  const int cp = p.context_parallel_size;
  const std::string key = "parallelism.context_parallel_size";
  if (cp == 1) {
    if (job_.software.split_encoders_over_cp)
      add("software.split_encoders_over_cp", "needs context_parallel_size above 1");
    return;
  }
  if (job_.given_times) return add(key, "given times are of whole chunks: 1 is meant");
  if (!job_.software.flash_attention)
    add(key,
        "needs software.flash_attention: Transformer Engine cuts sequences for flash "
        "attention only");
  if (any_llm_block(
          [](const Transformer& t) { return t.attention_chunk_size > 0 || t.cross_attention; }))
    add(key, "is modelled for attention over sequences, not for chunks or cross-attention");
  if (p.cp_comm_type == CpCommType::p2p &&
      any_llm_block([](const Transformer& t) { return t.sliding_window > 0; }))
    add("parallelism.cp_comm_type",
        "Transformer Engine has windows with all_gather and a2a only, found p2p");
  if (p.cp_comm_type != CpCommType::p2p &&
      any_llm_block([](const Transformer& t) { return static_cast<bool>(t.latent); }))
    add("parallelism.cp_comm_type",
        fmt::format("Transformer Engine has latent attention with p2p only, found {}",
                    name_of(p.cp_comm_type)));
  const std::int64_t pieces = std::int64_t{2} * cp;
  if (!job_.data.set && job_.data.tokens_per_sample % pieces != 0)
    add(key, fmt::format("sequences are cut into 2 x {} equal pieces, and {} tokens do not divide "
                         "by {}",
                         cp, job_.data.tokens_per_sample, pieces));
  const Transformer& t = job_.model.llm.blocks;
  const std::int64_t each = std::int64_t{p.tensor_model_parallel_size} * cp;
  if (p.cp_comm_type == CpCommType::a2a &&
      (t.num_attention_heads % each != 0 || t.num_key_value_heads % each != 0))
    add("parallelism.cp_comm_type",
        fmt::format("a2a gives every cp rank whole heads: {} heads and {} key-value heads do not "
                    "divide by tp x cp = {}",
                    t.num_attention_heads, t.num_key_value_heads, each));
  if (any_llm_block([&](const Transformer& kind) {
        return kind.recurrence.num_key_heads % each != 0 ||
               kind.recurrence.num_value_heads % each != 0;
      }))
    add(key, fmt::format("recurrences give every cp rank whole heads: key or value heads do not "
                         "divide by tp x cp = {}",
                         each));
  if (job_.strategy == "optimus" || job_.strategy == "omnibal+optimus")
    add(key, fmt::format("{} places encoders by tp, dp and pp alone: expected 1 for cp, found {}",
                         job_.strategy, cp));
}

void Checker::tensor_parallel() const {
  const auto all_kinds = [&](const auto& module, const std::string& key) {
    splits(block_kinds(module.blocks, module.other_blocks), key);
  };
  for (std::size_t i = 0; i < job_.model.encoders.size(); ++i)
    all_kinds(job_.model.encoders[i], fmt::format("model.encoders.{}", i));
  all_kinds(job_.model.llm, "model.llm");
}

// Kinds of block differ in their MLP and in what is in attention's place: all are checked with the
// first kind.
void Checker::splits(const std::vector<const Transformer*>& kinds,
                     const std::string& module) const {
  Transformer t = *kinds.front();
  for (const Transformer* kind : kinds) {
    if (kind->experts.num_experts > 0) t.experts = kind->experts;
    if (kind->recurrence) t.recurrence = kind->recurrence;
    t.intermediate_size = std::max(t.intermediate_size, kind->intermediate_size);
  }
  const std::int64_t tp = job_.parallelism.tensor_model_parallel_size;
  const auto divides = [&](const char* key, std::int64_t size, const char* hint) {
    if (size % tp != 0)
      add("parallelism.tensor_model_parallel_size",
          fmt::format("{} does not divide {}.{} {}{}", tp, module, key, size, hint));
  };
  divides("hidden_size", t.hidden_size, "");
  divides("intermediate_size", t.intermediate_size, "");
  if (!job_.parallelism.experts_apart())
    divides("moe_intermediate_size", t.experts.moe_intermediate_size, "");
  divides("shared_expert_intermediate_size", t.experts.shared_expert_intermediate_size, "");
  divides("recurrence.num_key_heads", t.recurrence.num_key_heads, "");
  divides("recurrence.num_value_heads", t.recurrence.num_value_heads, "");
  if (t.uneven_heads != UnevenHeads::refuse) return;
  divides("num_attention_heads", t.num_attention_heads, "; see uneven_heads");
  // With fewer KV heads than tp ranks, Megatron gives several ranks the same ones.
  if (tp % t.num_key_value_heads != 0) divides("num_key_value_heads", t.num_key_value_heads, "");
}

void Checker::parallel_branches() const {
  if (!job_.parallelism.sequence_parallel) return;
  const auto check = [&](const Transformer& t, const std::string& key) {
    if (t.parallel_residual)
      add("parallelism.sequence_parallel",
          fmt::format("is not modelled with {}.parallel_residual: GPT-NeoX, which has both "
                      "branches summed over ranks at once, has no sequence parallelism",
                      key));
  };
  check(job_.model.llm.blocks, "model.llm");
  for (std::size_t i = 0; i < job_.model.encoders.size(); ++i)
    check(job_.model.encoders[i].blocks, fmt::format("model.encoders.{}", i));
}

}  // namespace mllmsim::scenarios
