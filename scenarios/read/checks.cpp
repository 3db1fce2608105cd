#include "scenarios/read/checks.hpp"

#include "scenarios/read/checker.hpp"
#include "strategies/registry/registry.hpp"

namespace mllmsim::scenarios {

std::int64_t block_count(const Model& model) {
  std::int64_t blocks = model.llm.blocks.num_hidden_layers;
  for (const Encoder& e : model.encoders) blocks += e.blocks.num_hidden_layers;
  return blocks;
}

void check_parallelism(const Job& job, const Node& run, Problems& problems) {
  const Checker checker(job, run, problems);
  checker.batch();
  checker.schedule();
  checker.sharding();
  checker.offload();
  checker.activation_offload();
  checker.context_parallel();
  checker.size();
  if (job.given_times) checker.given_times();
  if (block_count(job.model) == 0) return;
  checker.training();
  checker.recompute();
  checker.precision();
  checker.expert_parallel();
  checker.layers();
  checker.tensor_parallel();
  checker.parallel_branches();
  checker.cross_attention();
}

void check_strategy(const Job& job, const Node& run, Problems& problems) {
  const Strategy* strategy = find_strategy(job.strategy);
  if (job.given_times || !strategy) return;
  for (const Problem& p : option_problems(*strategy, job))
    problems.add(nearest(run, p.key).position, p.key, p.message);
}

void check_data(const Job& job, const Node& run, Problems& problems) {
  if (block_count(job.model) > 0) Checker(job, run, problems).data();
}

}  // namespace mllmsim::scenarios
