#include "scenarios/read/run_reader.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "scenarios/data_sets/data_lengths.hpp"
#include "scenarios/data_sets/data_media.hpp"
#include "scenarios/data_sets/data_mixture.hpp"
#include "scenarios/files/input_files.hpp"
#include "scenarios/files/shipped_files.hpp"
#include "sim/base/errors.hpp"
#include "sim/base/text.hpp"
#include "strategies/data/packing/packing.hpp"
#include "strategies/registry/registry.hpp"

namespace mllmsim::scenarios {
namespace {

constexpr Range kBatch{1, 1e9};

// An option's value, if one is given that it accepts.
std::optional<OptionValue> read_option(TableReader& reader, const OptionSpec& spec) {
  return std::visit(
      [&](auto value) -> std::optional<OptionValue> {
        using T = decltype(value);
        bool right = false;
        if constexpr (std::is_same_v<T, bool> || std::is_same_v<T, std::string>)
          right = reader.read(spec.name, value);
        else
          right = reader.read(spec.name, value, kAnyNumber);
        if (!right) return std::nullopt;
        std::string problem = problem_with(spec, value);
        if (problem.empty()) return value;
        reader.problem(spec.name, std::move(problem));
        return std::nullopt;
      },
      spec.default_value);
}

void read_options(TableReader& reader, const Strategy& strategy, Options& options) {
  for (const OptionSpec& spec : strategy.options)
    if (auto value = read_option(reader, spec)) options[spec.name] = std::move(*value);
  set_defaults(strategy, options);
}

const Strategy* known_strategy(const Node& name, const std::string& key, Problems& problems) {
  if (!name.is<std::string>()) {
    problems.add(name.position, key,
                 fmt::format("expected a strategy's name, found {}", describe(name)));
    return nullptr;
  }
  const auto& text = name.as<std::string>();
  if (const Strategy* known = find_strategy(text)) return known;
  std::vector<std::string> names;
  for (const Strategy& s : strategies()) names.push_back(s.name);
  problems.add(name.position, key,
               fmt::format("no strategy named {}{}", describe(name), near_or_all(text, names)));
  return nullptr;
}

// The sizes say which one runs; a name says it too, and others are refused by theirs.
void read_schedule(TableReader& reader, const Parallelism& p) {
  std::string name;
  if (!reader.read("pipeline_schedule", name)) return;
  const bool interleaved =
      p.virtual_pipeline_stages > 1 || reader.has("num_layers_per_virtual_pipeline_stage");
  if (name == "1f1b" ? !interleaved : name == "interleaved-1f1b" && interleaved) return;
  if (name == "1f1b" || name == "interleaved-1f1b")
    return reader.problem(
        "pipeline_schedule",
        fmt::format("expected \"{}\" with these virtual_pipeline_stages, found \"{}\"",
                    interleaved ? "interleaved-1f1b" : "1f1b", name));
  reader.problem("pipeline_schedule",
                 fmt::format("\"{}\" is not simulated: a backward runs whole, its gradients of "
                             "inputs and of weights together, so there is no zero bubble, ZB-V or "
                             "DualPipe; there are \"1f1b\" and \"interleaved-1f1b\"",
                             name));
}

// Megatron-FSDP's name for what is sharded (--data-parallel-sharding-strategy).
void read_sharding_strategy(TableReader& reader, Parallelism& p) {
  constexpr std::array<std::string_view, 4> kStages{"no_shard", "optim", "optim_grads",
                                                    "optim_grads_params"};
  const char* key = "data_parallel_sharding_strategy";
  std::string name;
  if (!reader.read(key, name)) return;
  const auto found = std::ranges::find(kStages, name);
  if (found == kStages.end())
    return reader.problem(key, fmt::format("expected \"no_shard\", \"optim\", \"optim_grads\" or "
                                           "\"optim_grads_params\", found \"{}\"",
                                           name.substr(0, 60)));
  if (reader.has("zero_stage")) return reader.problem(key, "give either this or zero_stage");
  p.zero_stage = static_cast<int>(found - kStages.begin());
}

}  // namespace

WrittenParallelism read_parallelism(const Node& table, Problems& problems) {
  TableReader reader(table, "parallelism", problems);
  WrittenParallelism out;
  Parallelism& p = out.sizes;
  reader.read("tensor_model_parallel_size", p.tensor_model_parallel_size);
  reader.read("pipeline_model_parallel_size", p.pipeline_model_parallel_size);
  reader.read("virtual_pipeline_stages", p.virtual_pipeline_stages, {1, 10'000});
  reader.read("microbatch_group_size_per_virtual_pipeline_stage",
              p.microbatch_group_size_per_virtual_pipeline_stage, {1, 1'000'000});
  int dp = 0;
  if (reader.read("data_parallel_size", dp)) out.data_parallel_size = dp;
  std::int64_t layers = 0;
  if (reader.read("num_layers_per_virtual_pipeline_stage", layers))
    out.layers_per_virtual_stage = layers;
  if (reader.has("virtual_pipeline_stages") && reader.has("num_layers_per_virtual_pipeline_stage"))
    reader.problem("num_layers_per_virtual_pipeline_stage",
                   "give either this or virtual_pipeline_stages");
  read_schedule(reader, p);
  reader.read("sequence_parallel", p.sequence_parallel);
  reader.read("use_tp_pp_dp_mapping", p.use_tp_pp_dp_mapping);
  reader.read("context_parallel_size", p.context_parallel_size);
  reader.read("cp_comm_type", p.cp_comm_type);
  reader.read("expert_model_parallel_size", p.expert_model_parallel_size);
  reader.read("expert_tensor_parallel_size", p.expert_tensor_parallel_size);
  if (reader.read("zero_stage", p.zero_stage, {0, 1000}) && p.zero_stage > 3)
    reader.problem("zero_stage", fmt::format("expected 0, 1, 2 or 3, found {}", p.zero_stage));
  read_sharding_strategy(reader, p);
  reader.read("data_parallel_replicate_degree", p.data_parallel_replicate_degree);
  reader.read("reshard_after_forward", p.reshard_after_forward);
  reader.read("zero_hpz_partition_size", p.zero_hpz_partition_size);
  reader.read("micro_batch_size", p.micro_batch_size, {1, 1e4});
  std::int64_t steps = 0;
  if (reader.read("gradient_accumulation_steps", steps, kBatch))
    out.gradient_accumulation_steps = steps;
  else
    reader.require("global_batch_size", p.global_batch_size, kBatch);
  if (reader.has("gradient_accumulation_steps") && reader.has("global_batch_size"))
    reader.problem("gradient_accumulation_steps", "give either this or global_batch_size");
  return out;
}

namespace {

void read_modules(TableReader& run, RecomputeModules& out) {
  const Node* written = run.find("recompute_modules");
  if (!written) return;
  out = {};
  const auto* list = std::get_if<Node::Array>(&written->value);
  if (!list || list->empty())
    return run.problem("recompute_modules", fmt::format("expected a list of modules, found {}",
                                                        list ? "none" : describe(*written)));
  for (const Node& name : *list) {
    const std::optional<RecomputeModule> module =
        name.is<std::string>() ? named<RecomputeModule>(name.as<std::string>()) : std::nullopt;
    if (module)
      out.add(*module);
    else
      run.problem("recompute_modules",
                  fmt::format("expected {}, found {}", choices<RecomputeModule>(), describe(name)));
  }
}

}  // namespace

RecomputePlan read_recompute(TableReader& run, Software& software, Problems& problems) {
  RecomputePlan plan;
  read_modules(run, software.recompute_modules);
  run.read("recompute_method", plan.method);
  run.read("recompute_num_layers", plan.num_layers, {1, 1e4});
  const Node* written = run.find("recompute");
  if (!written) return plan;
  if (!written->is<Node::Table>()) {
    run.read("recompute", plan.llm);
    plan.encoder = plan.llm;
    return plan;
  }
  TableReader reader(*written, "recompute", problems);
  reader.read("encoder", plan.encoder);
  reader.read("llm", plan.llm);
  reader.read("layers_per_stage", plan.layers_per_stage, {0, 1e6});
  return plan;
}

namespace {

// A file beside the run, or one that is shipped, by its name.
std::string beside(const std::string& name, const std::filesystem::path& folder) {
  std::error_code error;
  if (std::filesystem::is_regular_file(folder / name, error)) return (folder / name).string();
  for (const ShippedFile& file : shipped_pictures())
    if (name == file.name || name == file.path.filename()) return file.path.string();
  return name;
}

// A file of lengths or of media relative to the run's folder, or a mixture: a file there or a
// shipped name.
data::DataSet load(const std::string& name, const std::filesystem::path& folder,
                   const std::vector<std::string>& changes, std::uint64_t seed, const Model& model,
                   double bytes_per_token) {
  const std::string found = beside(name, folder);
  if (is_media_file(found)) return read_media(found, model, bytes_per_token);
  if (is_lengths_file(name)) return read_lengths(found);
  return generate(read_mixture(found, changes), seed);
}

// Samples of more tokens are left out: images cannot be cut in the middle (ms-swift's
// truncation_strategy "delete").
data::DataSet without_longer(data::DataSet set, std::int64_t max_tokens) {
  if (max_tokens == 0) return set;
  data::DataSet out;
  out.tokens_per_tile = set.tokens_per_tile;
  out.media.resize(set.media.size());
  for (const data::SampleSet& part : set.sets) {
    const std::size_t begin = out.samples.size();
    for (std::size_t i = part.begin; i < part.end; ++i) {
      if (set.samples[i].tokens > max_tokens) continue;
      out.samples.push_back(set.samples[i]);
      for (std::size_t e = 0; e < set.media.size(); ++e) out.media[e].push_back(set.media[e][i]);
    }
    if (out.samples.size() > begin) out.sets.push_back({part.name, begin, out.samples.size()});
  }
  if (out.samples.empty())
    throw UserError("", "data.max_tokens",
                    fmt::format("every sample has more than {} tokens", max_tokens));
  return out;
}

// A pack takes every sample, and ISF keeps some packs: 0 is "not given".
void check_limits(TableReader& reader, const Data& data) {
  const auto check = [&](const char* pack, std::int64_t limit, std::int64_t chosen,
                         std::int64_t longest, const char* keep, std::int64_t kept,
                         const char* unit) {
    if (limit > 0 && limit < longest)
      reader.problem(
          pack, fmt::format("expected at least the {} {} of the longest sample, found {}", longest,
                            unit, limit));
    const std::int64_t most = limit > 0 ? limit : chosen;
    if (kept > most)
      reader.problem(keep, fmt::format("expected at most the {} {} of a full pack, found {}", most,
                                       unit, kept));
  };
  data::Load longest;
  for (const data::Sample& s : data.set->samples)
    longest = {std::max<std::int64_t>(longest.tiles, s.tiles),
               std::max<std::int64_t>(longest.tokens, s.tokens)};
  const data::PackLimits chosen = data::choose_limits(data.set->samples);
  check("pack_tiles", data.pack_limits.tiles, chosen.tiles, longest.tiles, "keep_tiles",
        data.keep_limits.tiles, "tiles");
  check("pack_tokens", data.pack_limits.tokens, chosen.tokens, longest.tokens, "keep_tokens",
        data.keep_limits.tokens, "tokens");
}

// What decides how a model's encoders count media.
std::string rules_text(const Model& model) {
  std::string text;
  for (const Encoder& e : model.encoders) {
    const ImageRule& r = e.image;
    text += fmt::format(
        " for {} {} {} {} {} {} {} {} {} {} {} {} {} {} {} {} {} {} {} {}", name_of(r.rule),
        e.tokens_per_tile, e.output_tokens_per_tile, e.tokens_per_output_token, r.tile_size,
        r.patch_size, r.min_tiles, r.max_tiles, r.thumbnail, r.most_tiles, r.min_pixels,
        r.max_pixels, r.temporal_patch_size, r.seconds_per_tile, r.video_min_pixels,
        r.video_max_pixels, r.video_pixels_per_frame, r.fps, r.min_frames, r.max_frames);
    for (const ImageSize& g : r.grids) text += fmt::format(" {}x{}", g.height, g.width);
  }
  return text;
}

Data read_data_set(TableReader& reader, const std::filesystem::path& folder, std::uint64_t seed,
                   const Model& model, InputFiles& files, Problems& problems) {
  Data data;
  std::string name;
  std::vector<std::string> changes;
  std::int64_t max_tiles = 0, max_tokens = 0;
  double bytes_per_token = kBytesPerToken;
  const bool named = reader.read("set", name);
  reader.read("bytes_per_token", bytes_per_token, {0.1, 1000});
  if (reader.read("max_tiles", max_tiles))
    changes.push_back(fmt::format("max_tiles={}", max_tiles));
  if (reader.read("max_tokens", max_tokens))
    changes.push_back(fmt::format("max_tokens={}", max_tokens));
  reader.read("batching", data.batching);
  reader.read("length_bin", data.length_bin, {1, 1e7});
  reader.read("equal_batch", data.equal_batch);
  reader.read("pack_tiles", data.pack_limits.tiles);
  reader.read("pack_tokens", data.pack_limits.tokens);
  reader.read("keep_tiles", data.keep_limits.tiles);
  reader.read("keep_tokens", data.keep_limits.tokens);
  reader.read("steps", data.steps, {0, 1e9});
  const bool is_file = is_lengths_file(name) || is_media_file(beside(name, folder));
  if (is_file) changes.clear();
  if (max_tiles > 0 && named && is_file)
    reader.problem("max_tiles", "a lengths file is as it is; only mixtures take this");
  if (!named || name.empty()) return data;
  try {
    std::string what = fmt::format("{} {} seed {} up to {}", (folder / name).string(),
                                   fmt::join(changes, " "), seed, max_tokens);
    if (is_media_file(beside(name, folder)))
      what += rules_text(model) + fmt::format(" {}", bytes_per_token);
    data.set = files.data_set(what, [&] {
      return without_longer(load(name, folder, changes, seed, model, bytes_per_token),
                            is_file ? max_tokens : 0);
    });
    data.samples = static_cast<double>(data.set->samples.size());
    check_limits(reader, data);
  } catch (const UserError& error) {
    problems.add(reader.find("set")->position, "data.set", error.what());
  }
  return data;
}

}  // namespace

Data read_data(const Node& table, bool lengths_required, const std::filesystem::path& folder,
               std::uint64_t seed, const Model& model, InputFiles& files, Problems& problems) {
  constexpr Range kSamples{1, 1e15}, kTokens{1, 1e7}, kTiles{0, 1e5};
  TableReader reader(table, "data", problems);
  if (reader.has("set")) {
    for (const char* key : {"samples", "tokens", "tokens_per_sample", "tiles_per_sample"})
      if (reader.has(key)) reader.problem(key, "data.set says it: give one of the two");
    return read_data_set(reader, folder, seed, model, files, problems);
  }
  for (const char* key : {"batching", "length_bin", "pack_tiles", "pack_tokens", "keep_tiles",
                          "keep_tokens", "max_tiles", "steps"})
    if (reader.has(key))
      reader.problem(key, "needs data.set: without it all samples are of one size");
  Data data;
  double tokens = 0;
  bool equal_batch = false;
  if (reader.read("equal_batch", equal_batch) && equal_batch)
    reader.problem("equal_batch",
                   "needs data.set: samples that are all alike are not packed, and a step has "
                   "global_batch_size of them anyway");
  if (lengths_required)
    reader.require("tokens_per_sample", data.tokens_per_sample, kTokens);
  else
    reader.read("tokens_per_sample", data.tokens_per_sample, kTokens);
  reader.read("tiles_per_sample", data.tiles_per_sample, kTiles);
  reader.read("samples", data.samples, kSamples);
  if (reader.read("tokens", tokens, kSamples) && data.tokens_per_sample > 0)
    data.samples = tokens / static_cast<double>(data.tokens_per_sample);
  if (reader.has("tokens") && reader.has("samples"))
    reader.problem("tokens", "give either this or samples");
  if (!reader.has("tokens") && !reader.has("samples") && lengths_required)
    reader.problem("samples", "missing: give it, or tokens for the whole run");
  return data;
}

GivenTimes read_given_times(const Node& table, Problems& problems) {
  TableReader reader(table, "given_times", problems);
  GivenTimes times;
  reader.require("forward", times.forward);
  reader.require("backward", times.backward);
  reader.read("p2p", times.p2p, Zero::allowed);
  return times;
}

void read_strategy(TableReader& run, Job& job, Problems& problems) {
  const Node* written = run.find("strategy");
  Node name;  // the default strategy, unless one is written
  name.value = job.strategy;
  std::string key = "strategy";
  if (written && !written->is<Node::Table>()) {
    name = *written;
  } else if (written) {
    key = "strategy.name";
    name.position = written->position;
    if (const Node* given = written->find("name")) name = *given;
  }
  const Strategy* strategy = known_strategy(name, key, problems);
  if (!strategy) return;  // whose options they are is not known
  job.strategy = strategy->name;
  Node none;
  TableReader reader(written && written->is<Node::Table>() ? *written : none, "strategy", problems);
  reader.find("name");
  read_options(reader, *strategy, job.options);
}

}  // namespace mllmsim::scenarios
