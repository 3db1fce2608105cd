#include "strategies/data/batching.hpp"

#include <algorithm>
#include <numeric>

#include "sim/errors.hpp"
#include "strategies/data/random.hpp"

namespace mllmsim {
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

}  // namespace

Batches make_batches(std::span<const Sample> samples, const BatchOptions& options) {
  check(options.micro_batch_size > 0 && options.ranks > 0 && options.micro_batches_per_rank > 0,
        "batches have positive sizes");
  Batches batches;
  batches.ranks = options.ranks;
  batches.micro_batches_per_rank = options.micro_batches_per_rank;
  std::vector<SampleIndex> order = shuffled_indices(samples.size(), options.seed);
  order.resize(whole(order.size(), options.micro_batch_size * batches.micro_batches_per_step()));
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
  std::vector<SampleIndex> order = shuffled_indices(packs.size(), seed);
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
  if (batches.joining == Joining::packed || batches.micro_batches.size() == 0) return 0;
  double sum = 0;
  for (std::size_t m = 0; m < batches.micro_batches.size(); ++m) {
    const auto members = batches.micro_batches[m];
    const auto padded = static_cast<double>(load_of(samples, members, Joining::padded).tokens);
    if (padded > 0) sum += 1 - static_cast<double>(total(samples, members).tokens) / padded;
  }
  return sum / static_cast<double>(batches.micro_batches.size());
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

}  // namespace mllmsim
