#include "strategies/plans/pass.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "sim/base/errors.hpp"
#include "strategies/data/packing/best_fit.hpp"
#include "strategies/data/packing/isf.hpp"

namespace mllmsim::plans {
namespace {

data::PackLimits limits_of(const Job& job) {
  data::PackLimits limits = job.data.pack_limits;
  const data::PackLimits chosen = data::choose_limits(job.data.set->samples);
  if (limits.tiles == 0) limits.tiles = chosen.tiles;
  if (limits.tokens == 0) limits.tokens = chosen.tokens;
  return limits;
}

data::SampleGroups packs_of(const Job& job, data::Batching batching) {
  const std::vector<data::Sample>& samples = job.data.set->samples;
  const data::PackLimits limits = limits_of(job);
  if (batching == data::Batching::best_fit) return data::pack_best_fit(samples, limits).packs;
  data::PackLimits keep = data::default_keep(limits);
  if (job.data.keep_limits.tiles > 0) keep.tiles = job.data.keep_limits.tiles;
  if (job.data.keep_limits.tokens > 0) keep.tokens = job.data.keep_limits.tokens;
  data::IsfOptions options;
  options.limits = limits;
  options.keep = keep;
  options.seed = job.seed;
  return data::pack_isf(samples, options).packs;
}

// Of one replica in a step.
std::int64_t packs_per_step(const Job& job, const data::SampleGroups& packs) {
  const Parallelism& p = job.parallelism;
  if (!job.data.equal_batch) return p.micro_batches();
  const std::int64_t unit = p.virtual_pipeline_stages > 1 ? p.micro_batch_group() : 1;
  const double samples_per_pack =
      static_cast<double>(packs.indices.size()) / static_cast<double>(packs.size());
  const double least = samples_per_pack * static_cast<double>(unit * p.data_parallel_size);
  const std::int64_t units = std::llround(static_cast<double>(p.global_batch_size) / least);
  if (units == 0)
    throw UserError(
        "", "data.equal_batch",
        fmt::format("the smallest step, {} packs on each of {} replicas, has {:.1f} samples, more "
                    "than twice parallelism.global_batch_size {}",
                    unit, p.data_parallel_size, least, p.global_batch_size));
  return units * unit;
}

TokenBatch tiles_of(const Encoder& encoder, std::int64_t tiles) {
  return {{{encoder.tokens_per_tile, tiles}}};
}

struct MediaLoad {
  std::int64_t sequences = 0, tokens = 0;
};

MediaLoad media_load(std::span<const data::Media> media, std::span<const data::SampleIndex> group) {
  MediaLoad load;
  for (const data::SampleIndex i : group) {
    load.sequences += media[i].sequences;
    load.tokens += media[i].tokens;
  }
  return load;
}

// So many tokens in sequences of nearly equal length, none of them lost.
void add_sequences(std::map<std::int64_t, std::int64_t>& counts, const MediaLoad& load) {
  if (load.sequences == 0) return;
  const std::int64_t length = load.tokens / load.sequences, longer = load.tokens % load.sequences;
  if (load.sequences > longer) counts[length] += load.sequences - longer;
  if (longer > 0) counts[length + 1] += longer;
}

TokenBatch sequences_of(const std::map<std::int64_t, std::int64_t>& counts) {
  TokenBatch batch;
  for (const auto& [length, count] : counts) batch.groups.push_back({length, count});
  return batch;
}

TokenBatch media_batch(std::span<const data::Media> media,
                       std::span<const data::SampleIndex> group) {
  std::map<std::int64_t, std::int64_t> counts;
  for (const data::SampleIndex i : group)
    add_sequences(counts, {media[i].sequences, media[i].tokens});
  return sequences_of(counts);
}

// One batch for all micro-batches of a pass: `take` makes of their loads what it needs.
template <class Take>
TokenBatch media_of_pass(std::span<const data::Media> media, const data::Batches& pass, Take take) {
  MediaLoad load;
  for (std::size_t m = 0; m < pass.micro_batches.size(); ++m)
    load = take(load, media_load(media, pass.micro_batches[m]));
  std::map<std::int64_t, std::int64_t> counts;
  add_sequences(counts, load);
  return sequences_of(counts);
}

}  // namespace

std::int64_t cross_keys(const Model& model, const MicroBatch& mb, std::int64_t sequences) {
  if (!crosses(model)) return 0;
  std::int64_t keys = 0;
  for (std::size_t e = 0; e < model.encoders.size(); ++e)
    keys += image_tokens_of(model.encoders[e], mb.encoders[e].sequences(), mb.encoders[e].tokens());
  return (keys + sequences - 1) / sequences;
}

data::Batches batches_of(const Job& job, data::Batching batching) {
  check(job.data.set != nullptr, "only a data set has a pass");
  const Parallelism& p = job.parallelism;
  data::Batches batches;
  if (data::is_packed(batching)) {
    const data::SampleGroups packs = packs_of(job, batching);
    batches =
        data::batches_of_packs(packs, p.data_parallel_size, packs_per_step(job, packs), job.seed);
  } else {
    data::BatchOptions options;
    options.batching = batching;
    options.micro_batch_size = p.micro_batch_size;
    options.ranks = p.data_parallel_size;
    options.micro_batches_per_rank = p.micro_batches();
    options.length_bin = job.data.length_bin;
    options.seed = job.seed;
    batches = data::make_batches(job.data.set->samples, options);
  }
  if (batches.steps() == 0)
    throw UserError("", "data.set",
                    fmt::format("{} samples do not fill one step of {} micro-batches",
                                job.data.set->samples.size(), batches.micro_batches_per_step()));
  return batches;
}

MicroBatch micro_batch_of(const Model& model, std::span<const data::Sample> samples,
                          std::span<const data::SampleIndex> group, data::Joining joining,
                          std::span<const std::vector<data::Media>> media) {
  MicroBatch mb;
  make_micro_batch(model, samples, group, joining, media, mb);
  return mb;
}

void make_micro_batch(const Model& model, std::span<const data::Sample> samples,
                      std::span<const data::SampleIndex> group, data::Joining joining,
                      std::span<const std::vector<data::Media>> media, MicroBatch& mb) {
  mb.samples = static_cast<std::int64_t>(group.size());
  const data::Load load = data::load_of(samples, group, joining);
  const bool cross = crosses(model);
  // What a sample's images are as keys, or a mean one's of a padded batch.
  const auto keys_of = [&](std::span<const data::SampleIndex> of) {
    std::int64_t keys = 0;
    for (std::size_t e = 0; cross && e < model.encoders.size(); ++e)
      for (const data::SampleIndex i : of)
        keys += media.empty()
                    ? image_tokens_of(model.encoders[e], samples[i].tiles, 0)
                    : image_tokens_of(model.encoders[e], media[e][i].sequences, media[e][i].tokens);
    return keys;
  };
  mb.encoders.resize(model.encoders.size());
  for (std::size_t e = 0; e < model.encoders.size(); ++e)
    if (media.empty())
      mb.encoders[e].groups.assign(1, {model.encoders[e].tokens_per_tile, load.tiles});
    else
      mb.encoders[e] = media_batch(media[e], group);
  mb.llm.groups.clear();
  if (joining == data::Joining::padded) {
    mb.llm.groups.push_back(
        {load.tokens / mb.samples, mb.samples, (keys_of(group) + mb.samples - 1) / mb.samples});
    return;
  }
  mb.llm.groups.reserve(group.size());
  for (const data::SampleIndex& i : group)
    mb.llm.groups.push_back({samples[i].tokens, 1, keys_of({&i, 1})});
}

std::vector<std::vector<MicroBatch>> micro_batches_of(const Job& job, const data::Batches& pass,
                                                      std::int64_t step) {
  std::vector<std::vector<MicroBatch>> out(static_cast<std::size_t>(pass.ranks));
  for (std::size_t rank = 0; rank < out.size(); ++rank)
    make_micro_batches(job, pass, step, rank, out[rank]);
  return out;
}

void make_micro_batches(const Job& job, const data::Batches& pass, std::int64_t step,
                        std::size_t replica, std::vector<MicroBatch>& out) {
  out.resize(static_cast<std::size_t>(pass.micro_batches_per_rank));
  for (std::size_t i = 0; i < out.size(); ++i)
    make_micro_batch(
        job.model, job.data.set->samples,
        pass.at(step, static_cast<std::int64_t>(i), static_cast<std::int64_t>(replica)),
        pass.joining, job.data.set->media, out[i]);
}

std::vector<std::int64_t> chosen_steps(const Job& job, const data::Batches& pass) {
  const std::int64_t all = pass.steps();
  const std::int64_t count = job.data.steps == 0 ? all : std::min(job.data.steps, all);
  std::vector<std::int64_t> steps;
  steps.reserve(static_cast<std::size_t>(count));
  for (std::int64_t i = 0; i < count; ++i) steps.push_back(i * all / count);
  return steps;
}

MicroBatch largest_micro_batch(const Job& job, const data::Batches& pass) {
  const std::span<const data::Sample> samples = job.data.set->samples;
  data::Load most;
  std::int64_t sequences = 1;
  for (std::size_t m = 0; m < pass.micro_batches.size(); ++m) {
    const data::Load load = data::load_of(samples, pass.micro_batches[m], pass.joining);
    most = {std::max(most.tiles, load.tiles), std::max(most.tokens, load.tokens)};
    if (pass.joining == data::Joining::padded)
      sequences = static_cast<std::int64_t>(pass.micro_batches[m].size());
  }
  MicroBatch mb;
  mb.samples = sequences;
  const auto larger = [](const MediaLoad& a, const MediaLoad& b) {
    return a.tokens < b.tokens ? b : a;
  };
  for (std::size_t e = 0; e < job.model.encoders.size(); ++e)
    mb.encoders.push_back(job.data.set->media.empty()
                              ? tiles_of(job.model.encoders[e], most.tiles)
                              : media_of_pass(job.data.set->media[e], pass, larger));
  mb.llm.groups = {{most.tokens / sequences, sequences, cross_keys(job.model, mb, sequences)}};
  return mb;
}

MicroBatch mean_micro_batch(const Job& job, const data::Batches& pass) {
  const std::span<const data::Sample> samples = job.data.set->samples;
  data::Load sum;
  std::size_t members = 0;
  for (std::size_t m = 0; m < pass.micro_batches.size(); ++m) {
    const data::Load load = data::load_of(samples, pass.micro_batches[m], pass.joining);
    sum = {sum.tiles + load.tiles, sum.tokens + load.tokens};
    members += pass.micro_batches[m].size();
  }
  const auto count = static_cast<double>(pass.micro_batches.size());
  const auto mean = [&](auto n) { return std::llround(static_cast<double>(n) / count); };
  MicroBatch mb;
  mb.samples = std::max<std::int64_t>(1, mean(members));
  const auto sum_of = [](const MediaLoad& a, const MediaLoad& b) {
    return MediaLoad{a.sequences + b.sequences, a.tokens + b.tokens};
  };
  for (std::size_t e = 0; e < job.model.encoders.size(); ++e) {
    if (job.data.set->media.empty()) {
      mb.encoders.push_back(tiles_of(job.model.encoders[e], mean(sum.tiles)));
      continue;
    }
    const TokenBatch all = media_of_pass(job.data.set->media[e], pass, sum_of);
    std::map<std::int64_t, std::int64_t> counts;
    add_sequences(counts, {std::max<std::int64_t>(all.tokens() > 0, mean(all.sequences())),
                           mean(all.tokens())});
    mb.encoders.push_back(sequences_of(counts));
  }
  mb.llm.groups = {{std::max<std::int64_t>(1, mean(sum.tokens) / mb.samples), mb.samples,
                    cross_keys(job.model, mb, mb.samples)}};
  return mb;
}

}  // namespace mllmsim::plans
