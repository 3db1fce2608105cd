#include "results/text/words.hpp"

#include <algorithm>
#include <array>
#include <utility>

namespace mllmsim::results {
namespace {

using Pair = std::pair<std::string_view, std::string_view>;

constexpr std::array<Pair, 45> kColumns{{
    {"iteration_s", "step time (s)"},
    {"gpu_days", "GPU-days"},
    {"days", "wall-clock time (days)"},
    {"gpus", "GPUs"},
    {"mfu", "MFU (share of peak)"},
    {"mfu_6nd", "MFU by 6 N D on the LLM"},
    {"hfu", "HFU (share of peak)"},
    {"samples_per_s", "throughput (samples/s)"},
    {"tokens_per_s_per_gpu", "throughput of a GPU (tokens/s)"},
    {"bubble_share", "idle time (share of the step)"},
    {"peak_memory_bytes", "peak memory of a GPU (GiB)"},
    {"gpu_memory_bytes", "memory of a GPU (GiB)"},
    {"tp", "tensor-parallel size"},
    {"pp", "pipeline-parallel size"},
    {"vpp", "virtual pipeline size"},
    {"cp", "context-parallel size"},
    {"dp", "data-parallel size"},
    {"zero_stage", "ZeRO stage"},
    {"micro_batch_size", "micro-batch size (samples)"},
    {"global_batch_size", "global batch size (samples)"},
    {"micro_batches", "micro-batches of a pipeline"},
    {"samples_per_step", "samples per step"},
    {"samples_per_micro_batch", "samples per micro-batch"},
    {"pass_steps", "steps of a pass over the data"},
    {"model_flops", "model FLOPs of a step"},
    {"hardware_flops", "executed FLOPs of a step"},
    {"pad_ratio", "padding (share)"},
    {"dist_ratio_tiles", "imbalance of tiles (share)"},
    {"dist_ratio_tokens", "imbalance of tokens (share)"},
    {"forward_s", "forward of a micro-batch (s)"},
    {"backward_s", "backward of a micro-batch (s)"},
    {"blocks", "layers of a stage"},
    {"parallelism.tensor_model_parallel_size", "tensor-parallel size"},
    {"parallelism.pipeline_model_parallel_size", "pipeline-parallel size"},
    {"parallelism.context_parallel_size", "context-parallel size"},
    {"parallelism.data_parallel_size", "data-parallel size"},
    {"parallelism.zero_stage", "ZeRO stage"},
    {"parallelism.micro_batch_size", "micro-batch size (samples)"},
    {"parallelism.global_batch_size", "global batch size (samples)"},
    {"parallelism.num_layers_per_virtual_pipeline_stage", "layers of a virtual stage"},
    {"state_bytes", "model states (GiB)"},
    {"cluster.nodes", "nodes"},
    {"cluster.gpu_memory", "GPU memory"},
    {"cluster.gpus_per_node", "GPUs of a node"},
    {"strategy.name", "strategy"},
}};

constexpr std::array<Pair, 4> kUnits{
    {{"_bytes", " (GiB)"}, {"_ns", " (ns)"}, {"_share", " (share)"}, {"_s", " (s)"}}};

constexpr std::string_view kBubbleShare = "bubble_share_";

template <class Enum, std::size_t N>
std::string_view at(const std::array<std::string_view, N>& list, Enum value) {
  static_assert(N == Names<Enum>::list.size(), "every name has words");
  return list[static_cast<std::size_t>(value)];
}

}  // namespace

std::string_view words(BubbleKind kind) {
  static constexpr std::array<std::string_view, kBubbleKinds> kWords{
      "waiting for gathered parameters",
      "waiting for reduced gradients",
      "pipeline warm-up",
      "pipeline cool-down",
      "waiting for a neighbour stage",
      "waiting for tensor-parallel ranks",
      "waiting for a slower replica",
      "waiting for encoder output"};
  return at(kWords, kind);
}

std::string_view words(Holding holding) {
  static constexpr std::array<std::string_view, kHoldings> kWords{
      "weights",
      "gradients",
      "gradients in the model's precision",
      "optimizer states",
      "gradient buckets",
      "library workspaces",
      "communication buffers",
      "CUDA context",
      "reserve"};
  return at(kWords, holding);
}

std::string_view words(SpanKind kind) {
  static constexpr std::array<std::string_view, Names<SpanKind>::list.size()> kWords{
      "forward",
      "backward",
      "recompute",
      "optimizer",
      "tensor-parallel communication",
      "sending to another stage",
      "receiving from another stage",
      "gathering parameters",
      "reducing gradients",
      "all stages meet",
      "the CPU prepares a pass",
      "idle"};
  return at(kWords, kind);
}

std::string_view words(PathKind kind) {
  static constexpr std::array<std::string_view, Names<PathKind>::list.size()> kWords{
      "forward",
      "backward",
      "recompute",
      "optimizer",
      "tensor-parallel communication",
      "transfer between stages",
      "gathering parameters",
      "reducing gradients",
      "all stages meet",
      "the CPU prepares a pass"};
  return at(kWords, kind);
}

std::string_view words(StreamKind stream) {
  static constexpr std::array<std::string_view, kStreamKinds> kWords{
      "compute",
      "tensor-parallel communication",
      "sending to the next stage",
      "receiving from the previous stage",
      "sending to the previous stage",
      "receiving from the next stage",
      "data-parallel communication",
      "encoder: sending to the next stage",
      "encoder: receiving from the previous stage",
      "encoder: sending to the previous stage",
      "encoder: receiving from the next stage"};
  return at(kWords, stream);
}

std::string words_of_column(const std::string& name) {
  const auto known = std::ranges::find(kColumns, std::string_view(name), &Pair::first);
  if (known != kColumns.end()) return std::string(known->second);
  if (name.starts_with(kBubbleShare))
    if (const auto kind = named<BubbleKind>(name.substr(kBubbleShare.size())))
      return std::string(words(*kind)) + " (share of the step)";
  std::string out = name.substr(name.rfind('.') + 1);
  std::string_view unit;
  for (const auto& [end, text] : kUnits)
    if (unit.empty() && out.size() > end.size() && out.ends_with(end)) {
      out.resize(out.size() - end.size());
      unit = text;
    }
  return spaced(out).append(unit);
}

double shown(const std::string& column, double value) {
  constexpr double kGib = 1 << 30;
  return column.ends_with("_bytes") ? value / kGib : value;
}

std::string spaced(std::string name) {
  std::replace(name.begin(), name.end(), '_', ' ');
  return name;
}

}  // namespace mllmsim::results
