// How samples form micro-batches, and how unequal those are.
//
// Micro-batches stand in the order in which they are used: the ranks of one position of one step
// side by side, so micro-batch m belongs to rank m % ranks, and ranks * micro_batches_per_rank of
// them are a step. What does not fill a micro-batch or a step is dropped, as trainers do
// (drop_last).
#pragma once

#include "sim/base/enum_names.hpp"
#include "strategies/data/samples.hpp"

namespace mllmsim::data {

enum class Batching : std::uint8_t {
  // micro_batch_size samples each, padded. Every rank has its own stretch of the data set, in
  // shuffled order: Megatron's random sampler with data sharding, OmniBal's RandomSampler.
  random,
  // Shuffled samples in bins of similar length, the shortest bin first; a bin's samples go to the
  // ranks in turn: OmniBal's GroupRandomBatchSamper.
  length,
  // What the ranks take at once is sorted by length and dealt to the rank that has the fewest
  // tokens, as in LLaVA's split_to_even_chunks. Ranks get similar sums; micro-batches hold all
  // lengths.
  device,
  // One pack per micro-batch, as strategies/data/packing/ makes them.
  isf,
  best_fit,
};

constexpr bool is_packed(Batching batching) { return batching >= Batching::isf; }

// Whether the LLM sees a micro-batch as rows padded to the longest sample, or as one packed
// sequence.
enum class Joining : std::uint8_t { padded, packed };

struct Batches {
  SampleGroups micro_batches;
  Joining joining = Joining::padded;
  std::int64_t ranks = 1;
  std::int64_t micro_batches_per_rank = 1;  // in a step

  std::int64_t micro_batches_per_step() const { return ranks * micro_batches_per_rank; }
  std::int64_t steps() const {
    return static_cast<std::int64_t>(micro_batches.size()) / micro_batches_per_step();
  }
  // The micro-batch of a rank at a position of a step.
  std::span<const SampleIndex> at(std::int64_t step, std::int64_t position,
                                  std::int64_t rank) const {
    const std::int64_t row = step * micro_batches_per_rank + position;
    return micro_batches[static_cast<std::size_t>(row * ranks + rank)];
  }
};

struct BatchOptions {
  Batching batching = Batching::random;  // one that is not packed
  std::int64_t micro_batch_size = 4;     // samples
  std::int64_t ranks = 1;
  std::int64_t micro_batches_per_rank = 1;
  std::int64_t length_bin = 512;  // tokens; of Batching::length, as in that sampler
  std::uint64_t seed = 1;
};

// Micro-batches of micro_batch_size samples, padded.
Batches make_batches(std::span<const Sample> samples, const BatchOptions& options);

// One pack per micro-batch; ranks take them as random micro-batches.
Batches batches_of_packs(const SampleGroups& packs, std::int64_t ranks,
                         std::int64_t micro_batches_per_rank, std::uint64_t seed);

// What a micro-batch costs: tiles of all its samples; tokens with padding, if it is padded.
Load load_of(std::span<const Sample> samples, std::span<const SampleIndex> micro_batch,
             Joining joining);

// sum_i (t_max - t_i) / sum (t_max * B) over all micro-batches: the share of the LLM's tokens that
// is padding. 0 if packed.
double pad_ratio(std::span<const Sample> samples, const Batches& batches);

// Mean over positions of sum_i (T_max - T_i) / (T_max * N), where i are the N ranks' micro-batches
// at one position of a step: the waiting of ranks that meet at every micro-batch, as with ZeRO-3.
// OmniBal's figures are of this kind and over N = 8 ranks, as its public script computes them.
// Nothing else gives them: summed over the positions of a step before ranks are compared, random
// micro-batches differ by a few percent, and with N = 4 even samples of only 1 or 5 tiles, 1.9 in
// the mean, stay at 0.29 where 0.34 is published for tiles.
struct DistRatio {
  double tiles = 0, tokens = 0;
};
DistRatio dist_ratio(std::span<const Sample> samples, const Batches& batches);

}  // namespace mllmsim::data

template <>
struct mllmsim::Names<mllmsim::data::Batching> {
  static constexpr std::array<std::string_view, 5> list{"random", "length", "device", "isf",
                                                        "best-fit"};
};
