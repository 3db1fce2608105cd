// Gradients in the passes of a step: when they appear in memory, and that the last backward copies
// them (Software::grads_start_empty, ddp_copies).
#include <algorithm>

#include "strategies/lower/parameters.hpp"
#include "strategies/lower/passes.hpp"

namespace mllmsim::lower {

// Of the rank's layers, as long as there are none: what is held counts them from the start.
Bytes Passes::missing_gradients(const Position& at) const {
  Bytes sum{};
  if (!gradients_appear_ || at.pass > 0) return sum;
  for (std::uint32_t c = 0; c < step_.chunks(); ++c)
    for (const PlannedLayer& layer : step_.chunk(at.rank, c))
      sum += gradients_of(step_.job(), layer);
  return sum;
}

// That this pass makes and leaves.
Bytes Passes::made_gradients(const PlannedLayer& layer, const Pass& pass) const {
  if (!gradients_appear_ || pass.forward || pass.micro_batch > 0) return {};
  return gradients_of(step_.job(), layer);
}

// The last backward scales gradients into the buckets that replicas reduce.
void Passes::copy_gradients(Issuing& issuing, const Pass& pass, const Chunk& layers,
                            Segment& segment) {
  if (pass.forward || pass.micro_batch + 1 < step_.micro_batches() ||
      !copies_gradients(step_.job()))
    return;
  const Bytes moved{2LL * step_.job().software.precision.grad_bytes_per_parameter *
                    parameters_per_gpu(step_.job(), layers, true)};
  if (moved.value == 0) return;
  const costs::MemoryBound copy{costs::MemoryOp::elementwise, moved};
  issuing.last = {to_time(costs_.models.kernels.memory_bound(copy).time),
                  step_.label("gradients into buckets", ""), TaskKind::backward};
  const Task like = step_.task_of(pass, issuing.device, StreamKind::compute, TaskKind::backward, 0);
  const KernelRange row = step_.kernel_groups().add_kernels({&issuing.last, 1});
  segment.last = issue(step_, issuing.chain, {row, {}, like}).last;
}

// Gradients that a chunk's first backward leaves, one layer after the other, while the layers give
// back what they saved: with g_i made by layer i, and s and w as in ChunkCost,
//   working = max over i of (s_1 + ... + s_i + w_i + g_i+1 + ... + g_n) - (s_1 + ... + s_n);
// what that is more than the chunk's own, and what remains. (g_i is part of w_i where it counts.)
// Layers that no gradient reaches give back what they saved at the instant that the one after them
// ends.
MemoryDeltas Passes::first_gradients(const Issuing& issuing, const Pass& pass, const Chunk& layers,
                                     const ChunkCost& cost) const {
  Bytes made{}, saved = cost.saved, working{}, most = cost.saved + cost.working;
  for (std::size_t i = layers.size(); i-- > 0;) {
    const costs::LayerTotals& t = totals(issuing, layers[i], pass);
    const auto [first, last] = recompute_unit(layers, i);
    if (i == last) working = Bytes{deltas(issuing, layers, i, pass, t.saved, t.working).start};
    const bool passed = t.recompute.time + t.backward.time == Time{};
    if (!passed) most = std::max(most, saved + working + made);
    made += gradients_of(step_.job(), layers[i]);
    if (i == first) saved = saved - t.saved;
  }
  const Bytes more = most - cost.saved - cost.working;
  return {more.value, made.value - more.value};
}

}  // namespace mllmsim::lower
