#include "strategies/step/replay.hpp"

#include <algorithm>

#include "sim/kernel/schedule.hpp"
#include "strategies/lower/lower.hpp"
#include "strategies/lower/plan_costs.hpp"
#include "strategies/step/plan_memory.hpp"

namespace mllmsim::step {
namespace {

constexpr std::size_t kAliveAtOnce = 3;  // tensors that pass in a forward
constexpr std::size_t kMostKnown = 1 << 16;

Bytes allowed(const Job& job, const Holdings& held) {
  const Bytes left = job.cluster.gpu_memory - (held.total() - held.allocated());
  const double fraction = job.software.memory.allocator.memory_fraction;
  return fraction > 0 ? std::min(left, scaled(job.cluster.gpu_memory, fraction)) : left;
}

}  // namespace

std::size_t RankReplay::KeyHash::operator()(const Key& key) const {
  std::uint64_t h = key.row;
  for (const std::int64_t n : {key.tokens, key.sequences, key.cross_keys})
    h = (h ^ static_cast<std::uint64_t>(n)) * 0x9E3779B97F4A7C15ULL;
  return h ^ (h >> 32);
}

RankReplay::RankReplay(const Job& job, const Plan& plan, const costs::LayerCosts& layers, int rank)
    : plan_(plan),
      layers_(layers),
      model_(job.model),
      rank_(rank),
      tp_(job.parallelism.tensor_model_parallel_size),
      flash_(job.software.flash_attention),
      keeps_outputs_(job.software.memory.keep_stage_outputs),
      splits_outputs_(job.parallelism.sequence_parallel ||
                      job.software.memory.partition_stage_outputs),
      allocator_(job.software.memory.allocator, allowed(job, rank_state(job, plan, rank).held)) {
  RankState state = rank_state(job, plan, rank);
  end_ = state.end;
  gradients_appear_ = lower::gradients_appear(job, micro_batches_of(plan));
  for (const Chunk& chunk : plan.stages[static_cast<std::size_t>(rank)]) add_rows(job, chunk);
  for (const Row& row : rows_)
    state.held[Holding::gradients] = state.held[Holding::gradients] - row.gradients * row.count;
  for (std::size_t i = 0; i < kHoldings; ++i)
    if (in_allocator(static_cast<Holding>(i)) && !allocate(state.held.bytes[i], held_)) {
      ran_out_ = {0, -1, true, allocator_.allocated(), allocator_.reserved(), asked_};
      return;
    }
}

void RankReplay::add_rows(const Job& job, const Chunk& chunk) {
  const auto first = static_cast<std::uint32_t>(rows_.size());
  for (const PlannedLayer& p : chunk) {
    const bool like = rows_.size() > first && lower::alike(layers_, rows_.back().planned, p);
    if (!like) {
      rows_.push_back({p, 0, job.recompute.in_units() ? job.recompute.num_layers : 1, {}, {}});
      if (gradients_appear_) rows_.back().gradients = lower::gradients_of(job, p);
      if (job.parallelism.zero_stage == 3)
        rows_.back().gathered = Bytes{lower::parameters_per_gpu(job, p, false) *
                                      job.software.precision.parameter_bytes};
    }
    ++rows_.back().count;
  }
  chunk_rows_.emplace_back(first, static_cast<std::uint32_t>(rows_.size()));
}

RankReplay::Tensors RankReplay::with_sums(costs::LayerTensors tensors) {
  Tensors out{std::move(tensors), {}};
  for (const Bytes bytes : out.saved) out.together.add(bytes);
  return out;
}

const RankReplay::Tensors& RankReplay::tensors(std::uint32_t row, const MicroBatch& mb) {
  const PlannedLayer& p = rows_[row].planned;
  const TokenBatch& batch = is_llm(model_, p.layer) ? mb.llm : mb.encoders[p.layer.module];
  const bool by_each_length = !flash_ && p.layer.kind == LayerKind::block;
  if (by_each_length && batch.groups.size() > 1)
    return latest_ = with_sums(layers_.tensors(p.layer, mb, p.recompute));
  if (known_.size() > kMostKnown) known_.clear();
  const auto [found, added] =
      known_.try_emplace({row, batch.tokens(), batch.sequences(), batch.cross_keys()});
  if (added) found->second = with_sums(layers_.tensors(p.layer, mb, p.recompute));
  return found->second;
}

bool RankReplay::allocate(Bytes bytes, std::vector<Block>& into) {
  if (bytes.value <= 0) return true;
  asked_ = bytes;
  const std::optional<Block> block = allocator_.allocate(bytes);
  if (block) into.push_back(*block);
  return block.has_value();
}

void RankReplay::free_last(std::vector<Block>& blocks, std::size_t count) {
  for (; count > 0; --count) {
    allocator_.free(blocks.back());
    blocks.pop_back();
  }
}

// What the chunk sends on, on one GPU.
Bytes RankReplay::output(const MicroBatch& mb, std::uint32_t chunk) const {
  const Chunk& layers = plan_.stages[static_cast<std::size_t>(rank_)][chunk];
  const bool last =
      chunk + 1 == chunk_rows_.size() && rank_ + 1 == static_cast<int>(plan_.stages.size());
  if (!keeps_outputs_ || last || layers.empty()) return {};
  const Bytes all = layers_.boundary(layers.back().layer, mb);
  return splits_outputs_ ? scaled(all, 1.0 / tp_) : all;
}

bool RankReplay::save(const Row& row, const Tensors& tensors, Saved& saved) {
  saved.rows.push_back(saved.blocks.size());
  for (int left = row.saving(); left > 0; --left) {
    if (allocator_.allocate_together(tensors.together, left, saved.blocks)) return true;
    for (const Bytes bytes : tensors.saved)
      if (!allocate(bytes, saved.blocks)) return false;
  }
  return true;
}

bool RankReplay::forward(const MicroBatch& mb, std::uint32_t chunk, Saved& saved) {
  for (std::uint32_t row = chunk_rows_[chunk].first; row < chunk_rows_[chunk].second; ++row) {
    const Tensors& t = tensors(row, mb);
    if (!allocate(rows_[row].gathered, passing_)) return false;
    std::size_t oldest = passing_.size();
    for (const Bytes bytes : t.forward) {
      if (!allocate(bytes, passing_)) return false;
      if (passing_.size() - oldest > kAliveAtOnce) allocator_.free(passing_[oldest++]);
    }
    while (passing_.size() > oldest) free_last(passing_, 1);
    passing_.resize(rows_[row].gathered.value > 0 ? 1 : 0);
    free_last(passing_, passing_.size());
    if (!save(rows_[row], t, saved)) return false;
  }
  return allocate(output(mb, chunk), saved.blocks);
}

bool RankReplay::backward(const MicroBatch& mb, std::uint32_t chunk, Saved& saved, bool first) {
  if (output(mb, chunk).value > 0) free_last(saved.blocks, 1);
  for (std::uint32_t row = chunk_rows_[chunk].second; row-- > chunk_rows_[chunk].first;) {
    const Tensors& t = tensors(row, mb);
    if (!allocate(rows_[row].gathered, passing_)) return false;
    for (int others = std::min(rows_[row].unit, rows_[row].count) - 1; others > 0; --others)
      for (const Bytes bytes : t.forward)
        if (!allocate(bytes, passing_)) return false;
    for (const Bytes bytes : t.backward)
      if (!allocate(bytes, passing_)) return false;
    free_last(saved.blocks, saved.blocks.size() - saved.rows.back());
    saved.rows.pop_back();
    free_last(passing_, passing_.size());
    for (int i = 0; first && i < rows_[row].count; ++i)
      if (!allocate(rows_[row].gradients, gradients_)) return false;
  }
  if (!allocate(end_.after_backward, passing_)) return false;
  free_last(passing_, passing_.size());
  return true;
}

bool RankReplay::finish_step() {
  for (const std::vector<Bytes>& tensors : end_.phases) {
    for (const Bytes bytes : tensors)
      if (!allocate(bytes, passing_)) return false;
    free_last(passing_, passing_.size());
  }
  free_last(gradients_, gradients_.size());
  return true;
}

bool RankReplay::step(std::int64_t number, const std::vector<MicroBatch>& micro_batches) {
  if (ran_out_) return false;
  if (saved_.size() != micro_batches.size() * chunk_rows_.size()) {
    saved_.resize(micro_batches.size() * chunk_rows_.size());
    passes_ = schedule(plan_.schedule, static_cast<int>(plan_.stages.size()),
                       static_cast<int>(chunk_rows_.size()),
                       static_cast<std::int64_t>(micro_batches.size()), rank_);
  }
  for (const Pass& pass : passes_) {
    const MicroBatch& mb = micro_batches[pass.micro_batch];
    Saved& kept = saved_[pass.micro_batch * chunk_rows_.size() + pass.chunk];
    if (pass.forward ? forward(mb, pass.chunk, kept)
                     : backward(mb, pass.chunk, kept, pass.micro_batch == 0))
      continue;
    ran_out_ = {number,
                static_cast<int>(pass.micro_batch),
                pass.forward,
                allocator_.allocated(),
                allocator_.reserved(),
                asked_};
    return false;
  }
  if (finish_step()) return true;
  ran_out_ = {number, -1, false, allocator_.allocated(), allocator_.reserved(), asked_};
  return false;
}

}  // namespace mllmsim::step
