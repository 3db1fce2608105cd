#include "strategies/data/batching.hpp"

#include <algorithm>
#include <numeric>

#include "sim/base/errors.hpp"
#include "strategies/data/random.hpp"

namespace mllmsim::data {
namespace {

std::vector<SampleIndex> shuffled_indices(std::size_t size, std::uint64_t seed) {
  std::vector<SampleIndex> order(size);
  std::iota(order.begin(), order.end(), SampleIndex{0});
  Random random(seed);
  shuffle(std::span(order), random);
  return order;
}

// How many of `available` are used when only whole multiples of `unit` are.
std::size_t whole(std::size_t available, std::int64_t unit) {
  return available - available % static_cast<std::size_t>(unit);
}

// Descending by tokens; equal ones stay in shuffled order.
void sort_by_length(std::span<const Sample> samples, std::span<SampleIndex> group) {
  std::stable_sort(group.begin(), group.end(), [&](SampleIndex a, SampleIndex b) {
    return samples[a].tokens > samples[b].tokens;
  });
}

// Of the samples that the ranks take at once, rank r gets r, r + ranks, r + 2 * ranks, ...
void deal_in_turn(std::span<SampleIndex> group, std::size_t ranks, std::span<SampleIndex> spare) {
  const std::size_t size = group.size() / ranks;
  for (std::size_t i = 0; i < group.size(); ++i) spare[(i % ranks) * size + i / ranks] = group[i];
  std::copy(spare.begin(), spare.end(), group.begin());
}

// Every rank has its own stretch of `size` things, and all take them in the same shuffled order,
// `together` at a time.
std::vector<SampleIndex> stretches(std::size_t size, std::size_t ranks, std::size_t together,
                                   std::uint64_t seed) {
  const std::size_t stretch = size / (ranks * together) * together;
  const std::vector<SampleIndex> shuffled = shuffled_indices(stretch, seed);
  std::vector<SampleIndex> order;
  order.reserve(stretch * ranks);
  for (std::size_t i = 0; i < stretch; i += together)
    for (std::size_t r = 0; r < ranks; ++r)
      for (std::size_t j = i; j < i + together; ++j)
        order.push_back(static_cast<SampleIndex>(r * stretch + shuffled[j]));
  return order;
}

// Each sorted sample to the rank with the fewest tokens that has a place left; the first of equals.
void deal_evenly(std::span<const Sample> samples, std::span<SampleIndex> group, std::size_t ranks,
                 std::span<SampleIndex> spare) {
  const std::size_t size = group.size() / ranks;
  std::vector<std::int64_t> tokens(ranks);
  std::vector<std::size_t> count(ranks);
  for (const SampleIndex i : group) {
    std::size_t least = ranks;
    for (std::size_t r = 0; r < ranks; ++r)
      if (count[r] < size && (least == ranks || tokens[r] < tokens[least])) least = r;
    spare[least * size + count[least]++] = i;
    tokens[least] += samples[i].tokens;
  }
  std::copy(spare.begin(), spare.end(), group.begin());
}

void group_samples(std::span<const Sample> samples, const BatchOptions& options,
                   std::span<SampleIndex> order) {
  const auto ranks = static_cast<std::size_t>(options.ranks);
  const std::size_t at_once = static_cast<std::size_t>(options.micro_batch_size) * ranks;
  const bool by_length = options.batching == Batching::length;
  if (by_length)
    std::stable_sort(order.begin(), order.end(), [&](SampleIndex a, SampleIndex b) {
      return samples[a].tokens / options.length_bin < samples[b].tokens / options.length_bin;
    });
  std::vector<SampleIndex> spare(at_once);
  for (std::size_t i = 0; i < order.size(); i += at_once) {
    const auto group = order.subspan(i, at_once);
    if (by_length) {
      deal_in_turn(group, ranks, spare);
    } else {
      sort_by_length(samples, group);
      deal_evenly(samples, group, ranks, spare);
    }
  }
}

}  // namespace

Batches make_batches(std::span<const Sample> samples, const BatchOptions& options) {
  check(options.micro_batch_size > 0 && options.ranks > 0 && options.micro_batches_per_rank > 0 &&
            options.length_bin > 0,
        "batches have positive sizes");
  check(!is_packed(options.batching), "packs are batched by batches_of_packs");
  Batches batches;
  batches.ranks = options.ranks;
  batches.micro_batches_per_rank = options.micro_batches_per_rank;
  const bool random = options.batching == Batching::random;
  std::vector<SampleIndex> order =
      random ? stretches(samples.size(), static_cast<std::size_t>(options.ranks),
                         static_cast<std::size_t>(options.micro_batch_size), options.seed)
             : shuffled_indices(samples.size(), options.seed);
  order.resize(whole(order.size(), options.micro_batch_size * batches.micro_batches_per_step()));
  if (!random) group_samples(samples, options, order);
  batches.micro_batches.indices = std::move(order);
  for (std::size_t end = 0; end < batches.micro_batches.indices.size();) {
    end += static_cast<std::size_t>(options.micro_batch_size);
    batches.micro_batches.offsets.push_back(static_cast<std::uint32_t>(end));
  }
  return batches;
}

Batches batches_of_packs(const SampleGroups& packs, std::int64_t ranks,
                         std::int64_t micro_batches_per_rank, std::uint64_t seed) {
  Batches batches;
  batches.joining = Joining::packed;
  batches.ranks = ranks;
  batches.micro_batches_per_rank = micro_batches_per_rank;
  std::vector<SampleIndex> order =
      stretches(packs.size(), static_cast<std::size_t>(ranks), 1, seed);
  order.resize(whole(order.size(), batches.micro_batches_per_step()));
  batches.micro_batches.indices.reserve(packs.indices.size());
  batches.micro_batches.offsets.reserve(order.size() + 1);
  for (const std::uint32_t pack : order) {
    const auto members = packs[pack];
    batches.micro_batches.indices.insert(batches.micro_batches.indices.end(), members.begin(),
                                         members.end());
    batches.micro_batches.end_group();
  }
  return batches;
}

Load load_of(std::span<const Sample> samples, std::span<const SampleIndex> micro_batch,
             Joining joining) {
  Load load = total(samples, micro_batch);
  if (joining == Joining::packed) return load;
  std::int64_t longest = 0;
  for (const SampleIndex i : micro_batch)
    longest = std::max<std::int64_t>(longest, samples[i].tokens);
  load.tokens = longest * static_cast<std::int64_t>(micro_batch.size());
  return load;
}

double pad_ratio(std::span<const Sample> samples, const Batches& batches) {
  if (batches.joining == Joining::packed) return 0;
  std::int64_t padded = 0, used = 0;
  for (std::size_t m = 0; m < batches.micro_batches.size(); ++m) {
    padded += load_of(samples, batches.micro_batches[m], Joining::padded).tokens;
    used += total(samples, batches.micro_batches[m]).tokens;
  }
  return padded > 0 ? 1 - static_cast<double>(used) / static_cast<double>(padded) : 0;
}

DistRatio dist_ratio(std::span<const Sample> samples, const Batches& batches) {
  const auto ranks = static_cast<std::size_t>(batches.ranks);
  const std::size_t positions = batches.micro_batches.size() / ranks;
  DistRatio ratio;
  for (std::size_t p = 0; p < positions; ++p) {
    Load sum, most;
    for (std::size_t r = 0; r < ranks; ++r) {
      const Load load = load_of(samples, batches.micro_batches[p * ranks + r], batches.joining);
      sum = {sum.tiles + load.tiles, sum.tokens + load.tokens};
      most = {std::max(most.tiles, load.tiles), std::max(most.tokens, load.tokens)};
    }
    const auto idle = [&](std::int64_t used, std::int64_t slowest) {
      const auto capacity = static_cast<double>(slowest * batches.ranks);
      return capacity > 0 ? 1 - static_cast<double>(used) / capacity : 0;
    };
    ratio.tiles += idle(sum.tiles, most.tiles);
    ratio.tokens += idle(sum.tokens, most.tokens);
  }
  const double count = positions > 0 ? static_cast<double>(positions) : 1;
  return {ratio.tiles / count, ratio.tokens / count};
}

}  // namespace mllmsim::data
