#include "sim/kernel/schedule.hpp"

#include <algorithm>

#include "sim/base/errors.hpp"

namespace mllmsim {
namespace {

// The k-th forward (or backward) of an interleaved rank, counted over all its chunks.
Pass interleaved_pass(bool forward, std::int64_t k, std::int64_t m, std::int64_t g,
                      std::int64_t v) {
  const std::int64_t first = k / (g * v) * g;  // micro-batch of the group
  const std::int64_t size = std::min(g, m - first), in_group = k % (g * v);
  const std::int64_t chunk = in_group / size, micro_batch = first + in_group % size;
  return {forward, static_cast<std::uint32_t>(micro_batch),
          static_cast<std::uint32_t>(forward ? chunk : v - 1 - chunk)};
}

// `warmup` forwards, then forward and backward in turn, then the remaining backwards.
template <class NthPass>
std::vector<Pass> one_forward_one_backward(std::int64_t total, std::int64_t warmup, NthPass nth) {
  std::vector<Pass> order;
  order.reserve(static_cast<std::size_t>(2 * total));
  warmup = std::min(warmup, total);
  for (std::int64_t k = 0; k < warmup; ++k) order.push_back(nth(true, k));
  for (std::int64_t k = warmup; k < total; ++k) {
    order.push_back(nth(true, k));
    order.push_back(nth(false, k - warmup));
  }
  for (std::int64_t k = total - warmup; k < total; ++k) order.push_back(nth(false, k));
  return order;
}

}  // namespace

std::vector<Pass> schedule(ScheduleKind kind, int ranks, int chunks, std::int64_t micro_batches,
                           int rank, std::int64_t group) {
  const auto plain = [](bool forward, std::int64_t k) {
    return Pass{forward, static_cast<std::uint32_t>(k), 0};
  };
  switch (kind) {
    case ScheduleKind::accumulate:
      check(ranks == 1 && chunks == 1, "accumulation has no pipeline");
      return one_forward_one_backward(micro_batches, 0, plain);
    case ScheduleKind::one_f_one_b:
      check(chunks == 1, "1F1B has one chunk a rank");
      return one_forward_one_backward(micro_batches, ranks - rank - 1, plain);
    case ScheduleKind::interleaved:
    case ScheduleKind::interleaved_late: {
      const std::int64_t g = group > 0 ? group : ranks;
      check(can_be_grouped(micro_batches, g, ranks), "interleaved 1F1B needs whole groups");
      const auto nth = [&](bool forward, std::int64_t k) {
        return interleaved_pass(forward, k, micro_batches, g, chunks);
      };
      const std::int64_t ahead = kind == ScheduleKind::interleaved ? 2 : 1;
      const std::int64_t warmup = ahead * (ranks - rank - 1) + (chunks - 1) * g;
      return one_forward_one_backward(micro_batches * chunks, warmup, nth);
    }
  }
  throw InternalError("unknown schedule");
}

}  // namespace mllmsim
