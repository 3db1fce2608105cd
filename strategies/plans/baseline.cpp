// Megatron-style baseline: encoders in front, 1F1B (interleaved if there are virtual stages),
// layers cut by `partition`:
//
//   parameters      so that the largest stage has as few parameters as can be (DeepSpeed's)
//   layers          into equal numbers of transformer blocks (Megatron's)
//   encoder_stage   the encoders alone on the first model stage, the LLM evenly over the others
//   given           as layers_per_stage says: blocks of each model stage, in the order data passes
#include <fmt/format.h>

#include <numeric>

#include "strategies/plans/balanced_cut.hpp"
#include "strategies/plans/partition.hpp"
#include "strategies/plans/plans.hpp"

namespace mllmsim::plans {
namespace {

// Sizes in layers from sizes in groups of layers.
std::vector<std::size_t> merged(const std::vector<std::size_t>& groups,
                                const std::vector<std::size_t>& groups_per_stage) {
  std::vector<std::size_t> sizes;
  auto at = groups.begin();
  for (std::size_t n : groups_per_stage) {
    sizes.push_back(std::accumulate(at, at + static_cast<std::ptrdiff_t>(n), std::size_t{0}));
    at += static_cast<std::ptrdiff_t>(n);
  }
  return sizes;
}

std::vector<std::size_t> given_blocks(const Job& job) {
  const auto& given = option<std::vector<std::int64_t>>(job.options, "layers_per_stage");
  return {given.begin(), given.end()};
}

std::vector<std::size_t> even(std::size_t n, std::size_t parts) {
  return balanced_cut(std::vector<double>(n, 1.0), parts);
}

// Encoders fill the first model stage; embeddings belong to the block after them.
std::vector<std::size_t> encoders_first(const Job& job, const std::vector<Layer>& layers,
                                        const std::vector<std::size_t>& groups,
                                        std::size_t stages) {
  std::size_t first = 0;
  for (std::size_t at = 0; at < layers.size() && !is_llm(job.model, layers[at]); ++first)
    at += groups[first];
  if (first == 0 || stages < 2) return even(groups.size(), stages);
  std::vector<std::size_t> blocks = even(groups.size() - first, stages - 1);
  blocks.insert(blocks.begin(), first);
  return blocks;
}

std::vector<std::size_t> cut(const Job& job, const std::vector<Layer>& layers) {
  const auto& how = option<std::string>(job.options, "partition");
  const std::size_t stages = model_stages(job);
  if (how == "parameters") return cut_by_parameters(job, layers, stages);
  const std::vector<std::size_t> groups = block_groups(layers);
  if (how == "encoder_stage") return merged(groups, encoders_first(job, layers, groups, stages));
  if (how == "layers") return merged(groups, even(groups.size(), stages));
  return merged(groups, given_blocks(job));
}

Plan plan_baseline(const Job& job, const CostContext&) {
  const std::vector<Layer> layers = layers_of(job.model);
  return plan_from(job, stages_from(job, layers, cut(job, layers)));
}

std::vector<Problem> check_given_blocks(const Job& job) {
  if (option<std::string>(job.options, "partition") != "given") return {};
  const std::vector<std::size_t> sizes = given_blocks(job);
  const std::size_t stages = model_stages(job), blocks = block_groups(layers_of(job.model)).size();
  const std::size_t sum = std::accumulate(sizes.begin(), sizes.end(), std::size_t{0});
  if (sizes.size() == stages && sum == blocks) return {};
  return {{"", "strategy.layers_per_stage",
           fmt::format("expected {} numbers (one per model stage) that add up to {} transformer "
                       "blocks, found {} that add up to {}",
                       stages, blocks, sizes.size(), sum)}};
}

}  // namespace

Strategy baseline_strategy() {
  return {"baseline",
          "Megatron 1F1B, encoders in front, cut by parameters, layers or as given",
          {{.name = "partition",
            .description = "how layers are cut into stages",
            .default_value = std::string("parameters"),
            .choices = {"parameters", "layers", "encoder_stage", "given"}},
           {.name = "layers_per_stage",
            .description = "transformer blocks of each model stage, for partition = \"given\"",
            .default_value = std::vector<std::int64_t>{},
            .range = {1, 1e6}}},
          plan_baseline,
          check_given_blocks};
}

}  // namespace mllmsim::plans
