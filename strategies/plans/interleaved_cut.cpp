#include "strategies/plans/interleaved_cut.hpp"

#include <algorithm>

#include "cost_models/kernels/kernel_costs.hpp"
#include "strategies/plans/balanced_cut.hpp"
#include "strategies/plans/turn_graph.hpp"

namespace mllmsim::plans {
namespace {

using Sizes = std::vector<std::size_t>;

// How much larger than need be the largest stage of a start may be.
constexpr double kSlack[] = {0, 0.1};
// Rounds of the pipeline in an estimate: more only repeat the middle of the step.
constexpr std::int64_t kRounds = 3;
// Looks at every stage of a start: shipped runs need at most 4, poor starts of many layers would
// take hundreds to reach what better ones begin with.
constexpr int kSweeps = 8;
// What is less than this is no improvement.
constexpr double kLess = 1 - 1e-6;

class Search {
 public:
  Search(const Job& job, const CostContext& costs, const std::vector<Layer>& layers,
         const MicroBatch& mb)
      : ranks_(static_cast<std::size_t>(job.parallelism.pipeline_model_parallel_size)),
        graph_(job, ScheduleKind::interleaved,
               job.parallelism.micro_batches() <= kRounds * job.parallelism.micro_batch_group()
                   ? job.parallelism.micro_batches()
                   : kRounds * job.parallelism.micro_batch_group(),
               turn_costs(job, costs, layers, mb)) {
    before_.emplace_back();
    for (const Layer& layer : layers) {
      const costs::LayerTotals t = costs.layers.total(layer, mb, recompute_of(job, layer));
      const TurnGraph::Stage& last = before_.back();
      before_.push_back({last.forward + to_seconds(t.forward.time).value,
                         last.backward + to_seconds(t.recompute.time + t.backward.time).value});
    }
  }

  // Moves layers from stage to stage, within a round of the ranks, while that helps.
  Sizes improved(Sizes sizes) {
    double best = span(sizes);
    bool better = true;
    for (int sweep = 0; better && sweep < kSweeps; ++sweep) {
      better = false;
      for (std::size_t from = 0; from < sizes.size(); ++from)
        for (std::size_t by = 1; by <= ranks_; ++by)
          for (const bool up : {true, false}) {
            if (sizes[from] == 1 || (up ? from + by >= sizes.size() : by > from)) continue;
            const std::size_t to = up ? from + by : from - by;
            --sizes[from];
            ++sizes[to];
            if (const double moved = span(sizes); moved < best * kLess) {
              best = moved;
              better = true;
              continue;
            }
            ++sizes[from];
            --sizes[to];
          }
    }
    return sizes;
  }

 private:
  static TurnGraph::Costs turn_costs(const Job& job, const CostContext& costs,
                                     const std::vector<Layer>& layers, const MicroBatch& mb) {
    const Parallelism& p = job.parallelism;
    Bytes bytes = costs.layers.boundary(layers[layers.size() / 2], mb);
    if (p.sequence_parallel || job.software.scatter_gather_p2p)
      bytes = scaled(bytes, 1.0 / p.tensor_model_parallel_size);
    const bool same_node =
        job.cluster.domain_of(p.rank(0, 0, 0)) == job.cluster.domain_of(p.rank(0, 0, 1));
    const bool waits = !job.software.overlap_p2p && !job.software.cuda_graphs;
    return {waits ? job.software.host_time_per_pass.value : 0,
            costs.kernels.point_to_point({bytes, same_node, 1}).time.value};
  }

  double span(const Sizes& sizes) {
    stages_.clear();
    std::size_t at = 0;
    for (const std::size_t size : sizes) {
      const TurnGraph::Stage &from = before_[at], &to = before_[at + size];
      stages_.push_back({to.forward - from.forward, to.backward - from.backward});
      at += size;
    }
    return graph_.span(stages_);
  }

  std::size_t ranks_;
  TurnGraph graph_;
  std::vector<TurnGraph::Stage> before_;  // times of all layers before each
  std::vector<TurnGraph::Stage> stages_;
};

}  // namespace

Sizes interleaved_cut(const Job& job, const CostContext& costs, const std::vector<Layer>& layers,
                      const MicroBatch& mb, const std::function<Time(const Sizes&)>& step_time) {
  const auto ranks = static_cast<std::size_t>(job.parallelism.pipeline_model_parallel_size);
  const std::size_t stages = model_stages(job);
  const std::vector<double> times = layer_times(job, costs.layers, layers, mb);
  Search search(job, costs, layers, mb);
  std::vector<Sizes> found;
  const auto add = [&](const Sizes& start) {
    Sizes sizes = search.improved(start);
    if (std::find(found.begin(), found.end(), sizes) == found.end())
      found.push_back(std::move(sizes));
  };
  add(cut_by_chunks(times, ranks, stages / ranks));
  for (const double slack : kSlack) add(balanced_cut(times, stages, slack));
  Sizes best = found.front();
  Time shortest = step_time(best);
  for (std::size_t i = 1; i < found.size(); ++i)
    if (const Time time = step_time(found[i]); time < shortest) {
      shortest = time;
      best = found[i];
    }
  return best;
}

}  // namespace mllmsim::plans
