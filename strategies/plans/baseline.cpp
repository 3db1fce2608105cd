// Megatron-style baseline: encoders in front, 1F1B (interleaved if there are virtual stages),
// layers cut by `partition`:
//
//   parameters      so that the largest stage has as few parameters as can be (DeepSpeed's)
//   layers          into equal numbers of transformer blocks (Megatron's)
//   encoder_stage   the encoders alone on the first model stage, the LLM evenly over the others
//   given           as layers_per_stage says: blocks of each model stage, in the order data passes
#include <fmt/format.h>

#include <numeric>

#include "sim/base/errors.hpp"
#include "strategies/job/strategy.hpp"
#include "strategies/plans/partition.hpp"

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

std::vector<std::size_t> given_blocks(const Job& job, std::size_t blocks, std::size_t stages) {
  const auto& given = std::get<std::vector<std::int64_t>>(job.options.at("layers_per_stage"));
  std::size_t sum = 0;
  std::vector<std::size_t> sizes;
  for (std::int64_t n : given) {
    if (n < 1)
      throw UserError("", "strategy.layers_per_stage", "every stage needs at least one layer");
    sizes.push_back(static_cast<std::size_t>(n));
    sum += sizes.back();
  }
  if (sizes.size() != stages || sum != blocks)
    throw UserError("", "strategy.layers_per_stage",
                    fmt::format("expected {} numbers (a model stage each) that add up to {} "
                                "transformer blocks, found {} that add up to {}",
                                stages, blocks, sizes.size(), sum));
  return sizes;
}

class Baseline : public Strategy {
 public:
  Plan plan(const Job& job, const CostContext&) const override {
    const Parallelism& p = job.parallelism;
    const auto stages = static_cast<std::size_t>(p.pipeline_model_parallel_size) *
                        static_cast<std::size_t>(p.virtual_pipeline_stages);
    const std::vector<Layer> layers = layers_of(job.model);
    return plan_from(job, stages_from(job, layers, cut(job, layers, stages)));
  }

 private:
  static std::vector<std::size_t> even(std::size_t n, std::size_t parts) {
    return balanced_cut(std::vector<double>(n, 1.0), parts);
  }

  static std::vector<std::size_t> cut(const Job& job, const std::vector<Layer>& layers,
                                      std::size_t stages) {
    const auto& how = std::get<std::string>(job.options.at("partition"));
    if (how == "parameters") return cut_by_parameters(job, layers, stages);
    const std::vector<std::size_t> groups = block_groups(layers);
    if (how == "encoder_stage") {
      // Encoders fill the first model stage; embeddings belong to the block after them.
      std::size_t first = 0;
      for (std::size_t at = 0; at < layers.size() && !is_llm(job.model, layers[at]); ++first)
        at += groups[first];
      if (first == 0 || stages < 2) return merged(groups, even(groups.size(), stages));
      std::vector<std::size_t> blocks = even(groups.size() - first, stages - 1);
      blocks.insert(blocks.begin(), first);
      return merged(groups, blocks);
    }
    if (how == "layers") return merged(groups, even(groups.size(), stages));
    return merged(groups, given_blocks(job, groups.size(), stages));
  }
};

const Registration registration{
    {"baseline",
     "Megatron 1F1B, encoders in front, cut by parameters, layers or as given",
     {{"partition",
       "how layers are cut into stages",
       std::string("parameters"),
       {"parameters", "layers", "encoder_stage", "given"}},
      {"layers_per_stage", "transformer blocks of each model stage, for partition = \"given\"",
       std::vector<std::int64_t>{}}},
     [] { return std::unique_ptr<Strategy>(new Baseline); }}};

}  // namespace
}  // namespace mllmsim::plans
