#include "strategies/step/replay.hpp"

#include <algorithm>

#include "sim/base/hash.hpp"
#include "sim/kernel/schedule.hpp"
#include "strategies/lower/activation_offload.hpp"
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
  return h ^ (h >> 32) ^ (key.alike ? 1 : 0);
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
  offload(job);
  for (const Row& row : rows_)
    state.held[Holding::gradients] = state.held[Holding::gradients] - row.gradients * row.count;
  for (std::size_t i = 0; i < kHoldings; ++i)
    if (in_allocator(static_cast<Holding>(i)) && !allocate(state.held.bytes[i], held_)) {
      ran_out_ = {0, -1, true, allocator_.allocated(), allocator_.reserved(), allocator_.refused()};
      return;
    }
}

void RankReplay::add_rows(const Job& job, const Chunk& chunk) {
  const auto first = static_cast<std::uint32_t>(rows_.size());
  for (const PlannedLayer& p : chunk) {
    const bool like = rows_.size() > first && lower::alike(layers_, rows_.back().planned, p);
    if (!like) {
      rows_.push_back(
          {p, false, 0, job.recompute.in_units() ? job.recompute.num_layers : 1, {}, {}});
      if (gradients_appear_) rows_.back().gradients = lower::gradients_of(job, p);
      if (job.parallelism.zero_stage == 3)
        rows_.back().gathered = Bytes{lower::parameters_per_gpu(job, p, false) *
                                      job.software.precision.parameter_bytes};
    }
    ++rows_.back().count;
  }
  chunk_rows_.emplace_back(first, static_cast<std::uint32_t>(rows_.size()));
}

void RankReplay::offload(const Job& job) {
  const int offloaded = job.software.cpu_offloading_num_layers;
  if (offloaded == 0) return;
  int blocks = 0;
  for (Row& row : rows_)
    if (row.offloading =
            row.planned.layer.kind == LayerKind::block && is_llm(job.model, row.planned.layer);
        row.offloading)
      blocks += row.count;
  offload_windows_ = lower::offload_windows(blocks, offloaded);
}

RankReplay::Tensors RankReplay::with_bounds(costs::LayerTensors tensors) {
  Tensors out{std::move(tensors), {}, {}};
  for (const Bytes bytes : out.forward) out.passing_forward.add(bytes);
  for (const Bytes bytes : out.backward) out.passing_backward.add(bytes);
  out.passing_forward.at_once(kAliveAtOnce + 1);
  return out;
}

const RankReplay::Tensors& RankReplay::tensors(std::uint32_t row, const MicroBatch& mb) {
  const PlannedLayer& p = rows_[row].planned;
  const TokenBatch& batch = is_llm(model_, p.layer) ? mb.llm : mb.encoders[p.layer.module];
  const bool by_each_length = !flash_ && p.layer.kind == LayerKind::block;
  if (by_each_length && batch.groups.size() > 1)
    return latest_ = with_bounds(layers_.tensors(p.layer, mb, p.recompute));
  const auto [found, added] = known_.try_emplace(
      {row, batch.tokens(), batch.sequences(), batch.cross_keys(), batch.groups.size() == 1});
  if (added) found->second = with_bounds(layers_.tensors(p.layer, mb, p.recompute));
  return found->second;
}

bool RankReplay::allocate(Bytes bytes, std::vector<Block>& into) {
  if (bytes.value <= 0) return true;
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

// At the end of a window the block that it is for has left.
bool RankReplay::save_offloading(const Row& row, const Tensors& tensors, Saved& saved) {
  for (int left = row.count; left > 0; --left) {
    Kept& kept = saved.offloading.emplace_back(Kept{tensors.saved, {}});
    for (const Bytes bytes : kept.tensors)
      if (!allocate(bytes, kept.blocks)) return false;
    const int block = static_cast<int>(saved.offloading.size()) - 1;
    const auto window = std::ranges::find(offload_windows_, block);
    if (window == offload_windows_.end()) continue;
    std::vector<Block>& gone =
        saved.offloading[static_cast<std::size_t>(window - offload_windows_.begin())].blocks;
    free_last(gone, gone.size());
  }
  return true;
}

// Where a backward enters a window, the block that it is for comes back.
bool RankReplay::back_through_offloaded(const Row& row, const Tensors& tensors, Saved& saved) {
  const std::size_t gathered = passing_.size();
  for (int left = row.count; left > 0; --left) {
    const int block = static_cast<int>(saved.offloading.size()) - 1;
    const auto window = std::ranges::find(offload_windows_, block);
    if (window != offload_windows_.end()) {
      Kept& back = saved.offloading[static_cast<std::size_t>(window - offload_windows_.begin())];
      for (const Bytes bytes : back.tensors)
        if (!allocate(bytes, back.blocks)) return false;
    }
    for (const Bytes bytes : tensors.backward)
      if (!allocate(bytes, passing_)) return false;
    free_last(saved.offloading.back().blocks, saved.offloading.back().blocks.size());
    saved.offloading.pop_back();
    free_last(passing_, passing_.size() - gathered);
  }
  return true;
}

bool RankReplay::save(const Row& row, const Tensors& tensors, Saved& saved) {
  saved.rows.push_back({saved.blocks.size(), &tensors == &latest_ ? nullptr : &tensors});
  return row.offloading ? save_offloading(row, tensors, saved)
                        : allocator_.allocate_together(tensors.saved, row.saving(), saved.blocks);
}

bool RankReplay::pass_forward(const Row& row, const Tensors& tensors) {
  if (row.gathered.value == 0 && allocator_.unchanged_by(tensors.passing_forward)) return true;
  if (!allocate(row.gathered, passing_)) return false;
  std::size_t oldest = passing_.size();
  for (const Bytes bytes : tensors.forward) {
    if (!allocate(bytes, passing_)) return false;
    if (passing_.size() - oldest > kAliveAtOnce) allocator_.free(passing_[oldest++]);
  }
  while (passing_.size() > oldest) free_last(passing_, 1);
  passing_.resize(row.gathered.value > 0 ? 1 : 0);
  free_last(passing_, passing_.size());
  return true;
}

bool RankReplay::forward(const MicroBatch& mb, std::uint32_t chunk, Saved& saved) {
  for (std::uint32_t row = chunk_rows_[chunk].first; row < chunk_rows_[chunk].second; ++row) {
    const Tensors& t = tensors(row, mb);
    if (!pass_forward(rows_[row], t)) return false;
    if (!save(rows_[row], t, saved)) return false;
  }
  return allocate(output(mb, chunk), saved.blocks);
}

// What a row's backward works with, until it is done.
bool RankReplay::start_backward(const Row& row, const Tensors& tensors, Saved& saved) {
  int others = std::min(row.unit, row.count) - 1;
  if (!row.offloading && row.gathered.value == 0 && others == 0 &&
      allocator_.unchanged_by(tensors.passing_backward))
    return true;
  if (!allocate(row.gathered, passing_)) return false;
  for (; others > 0; --others)
    for (const Bytes bytes : tensors.forward)
      if (!allocate(bytes, passing_)) return false;
  if (row.offloading) return back_through_offloaded(row, tensors, saved);
  for (const Bytes bytes : tensors.backward)
    if (!allocate(bytes, passing_)) return false;
  return true;
}

bool RankReplay::backward(const MicroBatch& mb, std::uint32_t chunk, Saved& saved, bool first) {
  if (output(mb, chunk).value > 0) free_last(saved.blocks, 1);
  for (std::uint32_t row = chunk_rows_[chunk].second; row-- > chunk_rows_[chunk].first;) {
    const SavedRow of_row = saved.rows.back();
    if (!start_backward(rows_[row], of_row.tensors ? *of_row.tensors : tensors(row, mb), saved))
      return false;
    allocator_.free_together(saved.blocks.data() + of_row.begin,
                             saved.blocks.data() + saved.blocks.size());
    saved.blocks.resize(of_row.begin);
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

// All that tensors() asks of a micro-batch.
std::uint64_t RankReplay::shapes_of(const std::vector<MicroBatch>& micro_batches) const {
  Digest digest;
  const auto add = [&](const TokenBatch& batch) {
    for (const std::int64_t n : {batch.tokens(), batch.sequences(), batch.cross_keys(),
                                 std::int64_t{batch.groups.size() == 1}})
      digest.add(static_cast<std::uint64_t>(n));
    if (flash_) return;
    for (const SequenceGroup& g : batch.groups)
      for (const std::int64_t n : {g.length, g.count, g.cross_keys})
        digest.add(static_cast<std::uint64_t>(n));
  };
  for (const MicroBatch& mb : micro_batches) {
    add(mb.llm);
    for (const TokenBatch& encoder : mb.encoders) add(encoder);
  }
  return digest.value();
}

bool RankReplay::step(std::int64_t number, const std::vector<MicroBatch>& micro_batches) {
  if (ran_out_) return false;
  if (known_.size() > kMostKnown) known_.clear();
  const std::int64_t before = allocator_.changes();
  std::int64_t& changed_nothing =
      changed_nothing_.try_emplace(shapes_of(micro_batches), -1).first->second;
  if (changed_nothing == before) return true;
  if (!replay(number, micro_batches)) return false;
  changed_nothing = allocator_.changes() == before ? before : -1;
  return true;
}

bool RankReplay::replay(std::int64_t number, const std::vector<MicroBatch>& micro_batches) {
  if (saved_.size() != micro_batches.size() * chunk_rows_.size()) {
    saved_.resize(micro_batches.size() * chunk_rows_.size());
    passes_ = schedule(
        plan_.schedule, static_cast<int>(plan_.stages.size()), static_cast<int>(chunk_rows_.size()),
        static_cast<std::int64_t>(micro_batches.size()), rank_, plan_.micro_batch_group);
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
                allocator_.refused()};
    return false;
  }
  if (finish_step()) return true;
  ran_out_ = {
      number, -1, false, allocator_.allocated(), allocator_.reserved(), allocator_.refused()};
  return false;
}

}  // namespace mllmsim::step
