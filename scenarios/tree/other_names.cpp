#include "scenarios/tree/other_names.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "scenarios/tree/merge.hpp"

namespace mllmsim::scenarios {
namespace {

// As Megatron, DeepSpeed, Hugging Face's trainer and torchrun call them, or without their table.
constexpr auto kElsewhere = std::to_array<std::pair<std::string_view, std::string_view>>({
    {"seq_length", "data.tokens_per_sample"},
    {"seq_len", "data.tokens_per_sample"},
    {"sequence_length", "data.tokens_per_sample"},
    {"max_seq_len", "data.tokens_per_sample"},
    {"max_seq_length", "data.tokens_per_sample"},
    {"model_max_length", "data.tokens_per_sample"},
    {"tokens_per_sample", "data.tokens_per_sample"},
    {"tiles_per_sample", "data.tiles_per_sample"},
    {"samples", "data.samples"},
    {"num_samples", "data.samples"},
    {"train_samples", "data.samples"},
    {"tokens", "data.tokens"},
    {"train_tokens", "data.tokens"},
    {"batching", "data.batching"},
    {"packing", "data.batching"},
    {"dataset", "data.set"},
    {"nodes", "cluster.nodes"},
    {"num_nodes", "cluster.nodes"},
    {"nnodes", "cluster.nodes"},
    {"gpus", "cluster.gpus"},
    {"num_gpus", "cluster.gpus"},
    {"world_size", "cluster.nodes"},
    {"gpus_per_node", "cluster.gpus_per_node"},
    {"gpu_memory", "cluster.gpu_memory"},
    {"tensor_parallel", "parallelism.tensor_model_parallel_size"},
    {"tensor_parallel_size", "parallelism.tensor_model_parallel_size"},
    {"tensor_model_parallel_size", "parallelism.tensor_model_parallel_size"},
    {"pipeline_parallel", "parallelism.pipeline_model_parallel_size"},
    {"pipeline_parallel_size", "parallelism.pipeline_model_parallel_size"},
    {"pipeline_model_parallel_size", "parallelism.pipeline_model_parallel_size"},
    {"data_parallel", "parallelism.data_parallel_size"},
    {"context_parallel", "parallelism.context_parallel_size"},
    {"context_parallel_size", "parallelism.context_parallel_size"},
    {"sequence_parallel", "parallelism.sequence_parallel"},
    {"zero", "parallelism.zero_stage"},
    {"zero_stage", "parallelism.zero_stage"},
    {"use_distributed_optimizer", "parallelism.zero_stage"},
    {"use_megatron_fsdp", "parallelism.data_parallel_sharding_strategy"},
    {"batch_size", "parallelism.global_batch_size"},
    {"train_batch_size", "parallelism.global_batch_size"},
    {"global_batch_size", "parallelism.global_batch_size"},
    {"gradient_accumulation_steps", "parallelism.gradient_accumulation_steps"},
    {"micro_batch", "parallelism.micro_batch_size"},
    {"micro_batch_size", "parallelism.micro_batch_size"},
    {"per_device_train_batch_size", "parallelism.micro_batch_size"},
    {"lora", "model.llm.lora"},
    {"freeze", "model.llm.trained"},
    {"trained", "model.llm.trained"},
    {"activation_checkpointing", "recompute"},
    {"gradient_checkpointing", "recompute"},
    {"recompute_granularity", "recompute"},
    {"dtype", "precision"},
    {"bf16", "precision"},
    {"fp8", "precision"},
    {"gpu", "cluster"},
    {"hardware", "cluster"},
});

}  // namespace

std::string key_meant(const std::string& key, std::string near) {
  const std::string last = key.substr(key.rfind('.') + 1);
  std::string meant = in_full(last);
  if (meant == last) {
    const auto at = std::find_if(kElsewhere.begin(), kElsewhere.end(),
                                 [&](const auto& pair) { return pair.first == last; });
    meant = at == kElsewhere.end() ? "" : std::string(at->second);
  }
  return meant.empty() || meant == key ? std::move(near)
                                       : fmt::format("; did you mean \"{}\"?", meant);
}

}  // namespace mllmsim::scenarios
