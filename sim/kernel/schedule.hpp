// In which order a pipeline rank runs its forwards and backwards. Orders are Megatron-LM's; only
// the order is fixed here, when each pass starts follows from the simulation.
//
// p ranks, v chunks (virtual stages) per rank, m micro-batches.
// Chunk c of rank r is model stage c * p + r.
//
//   one_f_one_b       rank r runs min(p - r - 1, m) forwards, then alternates, then the remaining
//                     backwards
//   interleaved       rank r runs 2(p - r - 1) + (v - 1)g forwards first (all m * v of them if
//                     fewer); passes go through the chunks in groups of g >= p micro-batches, as
//                     many as ranks unless told otherwise, backwards through the chunks in reverse;
//                     a last group of fewer than g has at least p
//   interleaved_late  the same with p - r - 1 fewer warm-up forwards, as few as 1F1B needs: later
//                     micro-batches start later on the first ranks, the step takes as long
//   accumulate        no pipeline: forward and backward of each micro-batch in turn
#pragma once

#include <cstdint>
#include <vector>

namespace mllmsim {

enum class ScheduleKind : std::uint8_t { one_f_one_b, interleaved, interleaved_late, accumulate };

struct Pass {
  bool forward = true;
  std::uint32_t micro_batch = 0;
  std::uint32_t chunk = 0;

  auto operator<=>(const Pass&) const = default;
};

// `group`: micro-batches that an interleaved rank takes through a chunk before the next; 0: as many
// as there are ranks.
std::vector<Pass> schedule(ScheduleKind kind, int ranks, int chunks, std::int64_t micro_batches,
                           int rank, std::int64_t group = 0);

// Whether interleaved ranks can take so many micro-batches in such groups.
constexpr bool can_be_grouped(std::int64_t micro_batches, std::int64_t group, std::int64_t ranks) {
  const std::int64_t last = micro_batches % group;
  return group >= ranks && group <= micro_batches && (last == 0 || last >= ranks);
}

}  // namespace mllmsim
