#include "strategies/step/step_end.hpp"

#include <algorithm>
#include <span>

#include "strategies/lower/parameters.hpp"
#include "strategies/lower/tied_embedding.hpp"

namespace mllmsim::step {
namespace {

constexpr std::int64_t kFp32 = 4;

// Parameters of the layer's largest tensor on one GPU.
std::int64_t largest_of(const Job& job, const PlannedLayer& planned) {
  const std::int64_t all = lower::parameters_of(job, planned, true).dense;
  if (planned.layer.kind != LayerKind::block) return all;
  const Transformer& t = blocks_of(job.model, planned.layer);
  const std::int64_t qkv = (t.num_attention_heads + 2 * t.num_key_value_heads) * t.head_dim;
  const std::int64_t up = t.intermediate_size * (t.gated_mlp && job.software.joint_gate_up ? 2 : 1);
  return std::min(all,
                  std::max(qkv, up) * t.hidden_size / job.parallelism.tensor_model_parallel_size);
}

std::int64_t largest_of(const Job& job, const std::vector<Chunk>& chunks) {
  std::int64_t most = job.model.llm.trained ? lower::copied_embedding(job, chunks) : 0;
  const PlannedLayer* before = nullptr;
  for (const Chunk& chunk : chunks)
    for (const PlannedLayer& layer : chunk) {
      if (!before || !lower::holds_like(job, *before, layer))
        most = std::max(most, largest_of(job, layer));
      before = &layer;
    }
  return most;
}

void add(std::vector<std::vector<Bytes>>& phases, std::vector<Bytes> tensors) {
  std::erase_if(tensors, [](Bytes b) { return b.value <= 0; });
  if (!tensors.empty()) phases.push_back(std::move(tensors));
}

Bytes most_of(std::span<const std::vector<Bytes>> phases) {
  Bytes most{};
  for (const std::vector<Bytes>& tensors : phases) {
    Bytes sum{};
    for (const Bytes b : tensors) sum += b;
    most = std::max(most, sum);
  }
  return most;
}

}  // namespace

Bytes StepEnd::most() const { return most_of(phases); }
Bytes StepEnd::while_reducing() const { return most_of(std::span(phases).first(reducing)); }
Bytes StepEnd::while_updating() const { return most_of(std::span(phases).subspan(reducing)); }

StepEnd step_end(const Job& job, const std::vector<Chunk>& chunks, std::int64_t trained,
                 Bytes optimizer) {
  const MemorySettings& memory = job.software.memory;
  const Parallelism& p = job.parallelism;
  const std::int64_t largest = largest_of(job, chunks);
  StepEnd out;
  out.after_backward = Bytes{memory.grad_cast_bytes_per_parameter * largest};
  if (p.gradient_ranks() > 1) {
    const std::int64_t at_once = memory.reduce_copy_parameters > 0
                                     ? std::max(memory.reduce_copy_parameters, largest)
                                     : trained;
    add(out.phases, {Bytes{memory.reduce_copy_bytes_per_parameter * std::min(at_once, trained)}});
  }
  out.reducing = out.phases.size();
  // Of a gradient that lies across the border of shards each rank looks at its part.
  const std::int64_t own =
      p.zero_stage >= 1 ? std::min(largest, trained / p.shard_ranks()) : largest;
  add(out.phases, {Bytes{memory.overflow_check_bytes_per_parameter * own}});
  add(out.phases, {Bytes{memory.grad_norm_bytes_per_parameter * own}});
  const std::int64_t bytes = job.software.precision.optimizer_bytes_per_parameter;
  if (bytes > 0) {
    const std::int64_t step = memory.optimizer_step_bytes_per_parameter;
    const auto share = [&](std::int64_t n) {
      return scaled(optimizer, static_cast<double>(n) / static_cast<double>(bytes));
    };
    add(out.phases, {share(std::max<std::int64_t>(step - kFp32, 0)), share(std::min(step, kFp32))});
  }
  return out;
}

}  // namespace mllmsim::step
