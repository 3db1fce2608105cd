#include "scenarios/read/checks.hpp"

#include <fmt/format.h>

#include <string>

#include "strategies/registry/registry.hpp"
#include "strategies/run/job_size.hpp"

namespace mllmsim::scenarios {
namespace {

class Checker {
 public:
  Checker(const Job& job, const Node& run, Problems& problems)
      : job_(job), run_(run), problems_(problems) {}

  void batch() const {
    const Parallelism& p = job_.parallelism;
    const std::int64_t samples = p.micro_batch_size * p.data_parallel_size;
    if (p.global_batch_size % samples != 0)
      add("parallelism.global_batch_size",
          fmt::format("expected a multiple of micro_batch_size {} x data parallel {} = {}, found "
                      "{}",
                      p.micro_batch_size, p.data_parallel_size, samples, p.global_batch_size));
  }

  void sharding() const {
    const Parallelism& p = job_.parallelism;
    const auto only_sharded = [&](const char* key, bool used) {
      if (used && p.zero_stage != 3)
        add(fmt::format("parallelism.{}", key),
            fmt::format("needs sharded parameters, zero_stage 3; found zero_stage {}",
                        p.zero_stage));
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
          fmt::format(
              "expected a divisor of the {} GPUs that parameters are sharded over, found {}",
              p.gradient_ranks(), near));
    if (near > 1 && (copies > 1 || !p.reshard_after_forward))
      add("parallelism.zero_hpz_partition_size",
          "DeepSpeed's: neither with data_parallel_replicate_degree nor without "
          "reshard_after_forward, which are FSDP's");
  }

  void context_parallel() const {
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
    if (any_llm_block([](const Transformer& t) {
          return t.latent || t.sliding_window > 0 || t.attention_chunk_size > 0 ||
                 t.cross_attention;
        }))
      add(key,
          "is modelled for attention over whole sequences only, not for latent attention, "
          "windows or cross-attention");
    const std::int64_t pieces = std::int64_t{2} * cp;
    if (!job_.data.set && job_.data.tokens_per_sample % pieces != 0)
      add(key,
          fmt::format("sequences are cut into 2 x {} equal pieces, and {} tokens do not divide "
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
    if (job_.strategy == "optimus" || job_.strategy == "omnibal+optimus")
      add(key, fmt::format("{} places encoders by tp, dp and pp alone: expected 1 for cp, found {}",
                           job_.strategy, cp));
  }

  void offload() const {
    if (job_.software.optimizer_offload_fraction == 0) return;
    const std::string key = "software.optimizer_offload_fraction";
    if (job_.parallelism.zero_stage == 0)
      add(key, "needs a sharded optimizer, zero_stage 1 or more: Megatron's and DeepSpeed's do");
    const ClusterSpec& c = job_.cluster;
    if (c.host_link_bandwidth.value <= 0 || c.host_memory_bandwidth.value <= 0)
      add(key, "needs cluster.host_link_bandwidth and cluster.host_memory_bandwidth");
  }

  void expert_parallel() const {
    const Parallelism& p = job_.parallelism;
    const Software& s = job_.software;
    const int ep = p.expert_model_parallel_size, etp = p.expert_tensor_ranks();
    const std::string key = ep > 1 ? "parallelism.expert_model_parallel_size"
                                   : "parallelism.expert_tensor_parallel_size";
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
    if (p.use_tp_pp_dp_mapping &&
        ep * etp != p.tensor_model_parallel_size * p.context_parallel_size)
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

  // Transformer Engine's products take blocks of values.
  template <class Predicate>
  bool any_llm_block(Predicate predicate) const {
    const auto kinds = block_kinds(job_.model.llm.blocks, job_.model.llm.other_blocks);
    return std::any_of(kinds.begin(), kinds.end(),
                       [&](const Transformer* t) { return predicate(*t); });
  }

  void precision() const {
    const Precision& precision = job_.software.precision;
    if (!is_quantised(precision.format)) return;
    const auto refuse = [&](bool has, const char* what) {
      if (has)
        add("precision",
            fmt::format("{} is not modelled for {}; bf16 is", name_of(precision.format), what));
    };
    refuse(any_llm_block([](const Transformer& t) { return t.adapters.lora_rank > 0; }),
           "adapters");
    refuse(any_llm_block([](const Transformer& t) { return t.cross_attention; }),
           "cross-attention");
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
      if (kind->experts.num_experts > 0)
        blocks_of(kind->experts.moe_intermediate_size / job_.parallelism.expert_tensor_ranks(),
                  "moe_intermediate_size / etp");
  }

  void size() const {
    const double tasks = size_of(job_).tasks;
    if (tasks > kMostTasksPerStep)
      add("parallelism.global_batch_size",
          fmt::format(
              "{} micro-batches of a pipeline are too many: a step has {:.3g} tasks, and at "
              "most {:.3g} can be simulated",
              job_.parallelism.micro_batches(), tasks, kMostTasksPerStep));
  }

  void schedule() const {
    const Parallelism& p = job_.parallelism;
    const int pp = p.pipeline_model_parallel_size;
    if (p.zero_stage == 3 && pp > 1)
      add("parallelism.zero_stage",
          fmt::format("3 needs pipeline_model_parallel_size 1, found {}", pp));
    if (p.virtual_pipeline_stages > 1) {
      if (pp == 1)
        add("parallelism.virtual_pipeline_stages",
            "the interleaved schedule needs pipeline_model_parallel_size above 1");
      else if (p.micro_batches() % pp != 0 && !packs_decide())
        add("parallelism.virtual_pipeline_stages",
            fmt::format("the interleaved schedule needs a multiple of pipeline_model_parallel_size "
                        "{} micro-batches, found {}",
                        pp, p.micro_batches()));
    }
    const std::size_t recomputed = job_.recompute.layers_per_stage.size();
    if (recomputed != 0 && recomputed != static_cast<std::size_t>(pp))
      add("recompute.layers_per_stage",
          fmt::format("expected {} numbers, one a pipeline stage, found {}", pp, recomputed));
  }

  // What Megatron-Core refuses (transformer_config.py, arguments.py), and what would be ignored.
  void recompute() const {
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
      refuse(m, delayed,
             "does not go with fp8 by delayed scaling; set software.fp8_current_scaling");
  }

  // How many micro-batches a step has is then chosen by the samples in packs.
  bool packs_decide() const { return job_.data.equal_batch && data::is_packed(job_.data.batching); }

  void given_times() const {
    const int pp = job_.parallelism.pipeline_model_parallel_size;
    const auto check = [&](const char* key, std::size_t found) {
      if (found != 1 && found != static_cast<std::size_t>(pp))
        add(key,
            fmt::format("expected one duration, or {}, one a pipeline stage, found {}", pp, found));
    };
    check("given_times.forward", job_.given_times->forward.size());
    check("given_times.backward", job_.given_times->backward.size());
  }

  void layers() const {
    const Parallelism& p = job_.parallelism;
    const std::int64_t chunks =
        std::int64_t{p.pipeline_model_parallel_size} * p.virtual_pipeline_stages;
    const std::int64_t blocks = block_count(job_.model);
    if (chunks > blocks)
      add("parallelism.pipeline_model_parallel_size",
          fmt::format("{} pipeline stages x {} virtual stages are more than the model's {} layers",
                      p.pipeline_model_parallel_size, p.virtual_pipeline_stages, blocks));
  }

  void training() const {
    const Model& model = job_.model;
    const auto learns = [](const auto& module) {
      return module.trained || module.blocks.adapters.lora_rank > 0;
    };
    bool any = learns(model.llm);
    for (const Encoder& e : model.encoders)
      any |= learns(e) || (e.projector_trained && !e.projector_sizes.empty());
    if (any) return;
    std::string keys = "model.llm.trained";
    for (std::size_t i = 0; i < model.encoders.size(); ++i)
      keys +=
          fmt::format(", model.encoders.{0}.trained and model.encoders.{0}.projector_trained", i);
    add("model.llm.trained", fmt::format("nothing is trained: set one of {} to true", keys));
  }

  void tensor_parallel() const {
    const auto all_kinds = [&](const auto& module, const std::string& key) {
      splits(block_kinds(module.blocks, module.other_blocks), key);
    };
    for (std::size_t i = 0; i < job_.model.encoders.size(); ++i)
      all_kinds(job_.model.encoders[i], fmt::format("model.encoders.{}", i));
    all_kinds(job_.model.llm, "model.llm");
  }

  // An encoder for pictures of any size has no tile unless one is given.
  void tile_sizes() const {
    for (std::size_t i = 0; i < job_.model.encoders.size(); ++i)
      if (job_.model.encoders[i].tokens_per_tile == 0)
        add(fmt::format("model.encoders.{}", i),
            "takes pictures of any size: give data with their sizes (data.set with width and "
            "height), or the size of a tile, image_size");
  }

  void parallel_branches() const {
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

  void cross_attention() const {
    if (!crosses(job_.model)) return;
    if (job_.model.encoders.empty())
      add("model.llm.cross_attention_layers", "there is no encoder whose tokens they could see");
    for (std::size_t i = 0; i < job_.model.encoders.size(); ++i)
      if (job_.model.encoders[i].deepstack_features > 0)
        add(fmt::format("model.encoders.{}.deepstack_features", i),
            "not with an llm that sees images by cross-attention");
  }

  // Lengths that were counted with another encoder's tokens for a tile say nothing about this one.
  // A sample of one tile may be text alone.
  void tokens_per_tile(const data::DataSet& set) const {
    if (job_.model.encoders.size() != 1 || crosses(job_.model)) return;
    const Encoder& e = job_.model.encoders.front();
    const std::int64_t ours = e.output_tokens_per_tile;
    if (set.tokens_per_tile > 0 && set.tokens_per_tile != ours)
      return add("data.set", fmt::format("counts {} LLM tokens for a tile, but {} gives {}",
                                         set.tokens_per_tile, e.name, ours));
    for (std::size_t i = 0; i < set.samples.size(); ++i) {
      const data::Sample& s = set.samples[i];
      if (s.tiles > 1 && s.tokens < s.tiles * ours)
        return add("data.set",
                   fmt::format("sample {} has {} tiles but {} tokens; with {} LLM tokens for each "
                               "tile of {} it has at least {}",
                               i + 1, s.tiles, s.tokens, ours, e.name, s.tiles * ours));
    }
  }

  void data() const {
    const Data& d = job_.data;
    if (d.set) {  // its samples carry their own
      if (!d.set->media.empty()) return;
      tile_sizes();
      return tokens_per_tile(*d.set);
    }
    const double tiles = d.tiles_per_sample;
    if (job_.model.encoders.empty()) {
      if (tiles > 0) add("data.tiles_per_sample", "the model has no encoder");
      return;
    }
    if (tiles == 0) {
      add("data.tiles_per_sample",
          "missing: the model has an encoder; give it, or samples of your own with data.set");
      return;
    }
    tile_sizes();
    if (crosses(job_.model)) return;  // images are not among the tokens
    for (const Encoder& e : job_.model.encoders) {
      const double image_tokens = tiles * static_cast<double>(e.output_tokens_per_tile);
      if (image_tokens > static_cast<double>(d.tokens_per_sample))
        add("data.tokens_per_sample",
            fmt::format("includes image tokens, of which {} tiles x {} from {} give {}; found {}",
                        tiles, e.output_tokens_per_tile, e.name, image_tokens,
                        d.tokens_per_sample));
    }
  }

 private:
  // Kinds of block differ in their MLP alone: the widest experts are checked with the first kind.
  void splits(const std::vector<const Transformer*>& kinds, const std::string& module) const {
    Transformer t = *kinds.front();
    for (const Transformer* kind : kinds)
      if (kind->experts.num_experts > 0) t.experts = kind->experts;
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
    if (t.uneven_heads != UnevenHeads::refuse) return;
    divides("num_attention_heads", t.num_attention_heads, "; see uneven_heads");
    // With fewer KV heads than tp ranks, Megatron gives several ranks the same ones.
    if (tp % t.num_key_value_heads != 0) divides("num_key_value_heads", t.num_key_value_heads, "");
  }

  void add(const std::string& key, std::string message) const {
    problems_.add(nearest(run_, key).position, key, std::move(message));
  }

  const Job& job_;
  const Node& run_;
  Problems& problems_;
};

}  // namespace

std::int64_t block_count(const Model& model) {
  std::int64_t blocks = model.llm.blocks.num_hidden_layers;
  for (const Encoder& e : model.encoders) blocks += e.blocks.num_hidden_layers;
  return blocks;
}

void check_parallelism(const Job& job, const Node& run, Problems& problems) {
  const Checker checker(job, run, problems);
  checker.batch();
  checker.schedule();
  checker.sharding();
  checker.offload();
  checker.context_parallel();
  checker.size();
  if (job.given_times) checker.given_times();
  if (block_count(job.model) == 0) return;
  checker.training();
  checker.recompute();
  checker.precision();
  checker.expert_parallel();
  checker.layers();
  checker.tensor_parallel();
  checker.parallel_branches();
  checker.cross_attention();
}

void check_strategy(const Job& job, const Node& run, Problems& problems) {
  const Strategy* strategy = find_strategy(job.strategy);
  if (job.given_times || !strategy) return;
  for (const Problem& p : option_problems(*strategy, job))
    problems.add(nearest(run, p.key).position, p.key, p.message);
}

void check_data(const Job& job, const Node& run, Problems& problems) {
  if (block_count(job.model) > 0) Checker(job, run, problems).data();
}

}  // namespace mllmsim::scenarios
