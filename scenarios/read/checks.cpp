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

  // Lengths that were counted with another encoder's tokens for a tile say nothing about this one.
  // A sample of one tile may be text alone.
  void tokens_per_tile(const data::DataSet& set) const {
    if (job_.model.encoders.size() != 1) return;
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
      add("data.tiles_per_sample", "missing: the model has an encoder");
      return;
    }
    tile_sizes();
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
  checker.size();
  if (job.given_times) checker.given_times();
  if (block_count(job.model) == 0) return;
  checker.training();
  checker.layers();
  checker.tensor_parallel();
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
