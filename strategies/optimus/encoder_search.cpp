#include "strategies/optimus/encoder_search.hpp"

#include <algorithm>
#include <numeric>

#include "cost_models/layers/layer_costs.hpp"
#include "sim/account/memory.hpp"
#include "sim/base/errors.hpp"
#include "sim/base/progress.hpp"
#include "strategies/lower/encoder_kernels.hpp"
#include "strategies/plans/partition.hpp"

namespace mllmsim::optimus {
namespace {

std::vector<Layer> encoder_layers(const Model& model) {
  std::vector<Layer> out;
  for (const Layer& layer : layers_of(model))
    if (!is_llm(model, layer)) out.push_back(layer);
  return out;
}

// Layers in stages of equal time. Several encoders are one chain.
std::vector<Chunk> cut_encoders(const Job& job, costs::LayerCosts& costs, const MicroBatch& mb,
                                int pp) {
  if (job.recompute.in_units() && job.recompute.encoder == Recompute::full)
    throw UserError("", "recompute_num_layers",
                    "encoders beside the LLM's pipeline recompute block by block; use 1");
  const std::vector<Layer> layers = encoder_layers(job.model);
  std::vector<Chunk> stages;
  std::size_t at = 0;
  for (std::size_t size :
       plans::cut_by_time(job, costs, layers, mb, static_cast<std::size_t>(pp))) {
    Chunk& chunk = stages.emplace_back();
    for (std::size_t i = 0; i < size; ++i, ++at)
      chunk.push_back({layers[at], plans::recompute_of(job, layers[at])});
  }
  return stages;
}

// Model state and the activations of `waves` waves that wait for their backward, of the largest
// stage.
Bytes memory_of(const Job& job, const EncoderPlan& plan, costs::LayerCosts& costs, const Plan& llm,
                std::size_t waves) {
  Bytes most{};
  for (int s = 0; s < plan.pp; ++s) {
    const Holdings state = model_state(lower::encoder_parameters_per_gpu(job, plan, s, false),
                                       lower::encoder_parameters_per_gpu(job, plan, s, true),
                                       lower::encoder_parallelism(job, plan).data_parallel_size,
                                       job.parallelism.zero_stage, job.software);
    std::int64_t activations = 0;
    for (const lower::EncoderKernel& k : lower::encoder_kernels(
             costs, plan.stage_of(s), {&llm.micro_batches.front().front()}, true))
      activations += k.memory_at_start + k.memory_at_end;
    most = std::max(most, state.total() + Bytes{activations * static_cast<std::int64_t>(waves)});
  }
  return most;
}

// Cuts whose stages take equally long, as two of many like layers do, differ in memory. Which of
// them is found hangs on the last nanosecond, so that of cuts a layer away and as quick to within
// so much the one that needs least memory is taken.
constexpr double kAsQuick = 1.01;

void save_memory(const Job& job, costs::LayerCosts& costs, const Plan& llm, EncoderPlan& plan) {
  const MicroBatch& mb = llm.micro_batches.front().front();
  const std::vector<double> times = plans::layer_times(job, costs, encoder_layers(job.model), mb);
  const auto longest = [&](const std::vector<Chunk>& stages) {
    double most = 0;
    auto at = times.begin();
    for (const Chunk& stage : stages) {
      const auto end = at + static_cast<std::ptrdiff_t>(stage.size());
      most = std::max(most, std::accumulate(at, end, 0.0));
      at = end;
    }
    return most;
  };
  const std::size_t waves = llm.micro_batches.front().size();
  const double limit = longest(plan.stages) * kAsQuick;
  Bytes least = memory_of(job, plan, costs, llm, waves);
  for (std::size_t s = 0; s + 1 < plan.stages.size(); ++s)
    for (const bool down : {true, false}) {
      EncoderPlan moved = plan;
      Chunk &first = moved.stages[s], &second = moved.stages[s + 1];
      if ((down ? first : second).size() == 1) continue;
      if (down) {
        second.insert(second.begin(), first.back());
        first.pop_back();
      } else {
        first.push_back(second.front());
        second.erase(second.begin());
      }
      if (longest(moved.stages) > limit) continue;
      const Bytes memory = memory_of(job, moved, costs, llm, waves);
      if (memory >= least) continue;
      least = memory;
      plan = std::move(moved);
    }
}

// Divisors of the LLM's size that the search looks at.
std::vector<int> sizes(int of_llm, int asked) {
  std::vector<int> out;
  for (int n = 1; n <= of_llm; ++n)
    if (of_llm % n == 0 && (asked == 0 || n == asked)) out.push_back(n);
  return out;
}

struct Sizes {
  int tp, pp;
};

// Those of the space that the encoders have layers for.
std::vector<Sizes> sizes_in(const Job& job, const SearchSpace& space) {
  const auto layers = static_cast<int>(encoder_layers(job.model).size());
  std::vector<Sizes> out;
  for (const int tp : sizes(job.parallelism.tensor_model_parallel_size, space.tp))
    for (const int pp : sizes(job.parallelism.pipeline_model_parallel_size, space.pp))
      if (pp <= layers) out.push_back({tp, pp});
  return out;
}

// Plans that need as little memory to within so much are as frugal: a few MiB are no reason to take
// a slower one.
constexpr double kAsFrugal = 1.01;

struct Found {
  std::vector<RankedPlan> fit;
  std::vector<std::pair<Bytes, RankedPlan>> too_large;
};

// Adds the schedules of one (pp, tp). Compositions: the group that finishes first takes the next
// wave, until it has its share and a few more; with one group there is nothing to compose.
void add_schedules(const Job& job, const Plan& llm, const LlmTimeline& timeline,
                   const CostContext& costs, costs::LayerCosts& encoder_costs, Bytes left,
                   Placement placement, RankedPlan candidate, Found& found) {
  const EncoderWork work = encoder_work(job, llm, candidate.plan, encoder_costs, costs);
  const auto groups = static_cast<std::size_t>(work.groups);
  const std::size_t even = (work.waves() + groups - 1) / groups;
  candidate.encoder_time = work.all;
  candidate.estimate = kAlways;
  for (std::size_t extra = 0; extra < (groups > 1 ? 3U : 1U); ++extra) {
    const Bytes memory = memory_of(job, candidate.plan, encoder_costs, llm, even + extra);
    const bool fits = memory <= left;
    if (!fits && extra > 0) break;
    BubbleSchedule s = schedule_encoders(work, timeline, placement, even + extra, false);
    if (extra > 0 && s.estimate >= candidate.estimate) break;
    candidate.estimate = s.estimate;
    RankedPlan next = candidate;
    next.plan.waves = std::move(s.waves);
    next.most_waves = even + extra;
    if (fits)
      found.fit.push_back(std::move(next));
    else
      found.too_large.emplace_back(memory, std::move(next));
  }
}

}  // namespace

std::size_t encoder_plans(const Job& job, const SearchSpace& space) {
  return sizes_in(job, space).size();
}

std::vector<RankedPlan> search_encoder_plans(const Job& job, const Plan& llm,
                                             const LlmTimeline& timeline, const CostContext& costs,
                                             const SearchSpace& space, Placement placement) {
  const Bytes left = *std::min_element(space.memory_left.begin(), space.memory_left.end());
  Found found;
  for (const auto& [tp, pp] : sizes_in(job, space)) {
    Parallelism own = job.parallelism;
    own.tensor_model_parallel_size = tp;
    costs::LayerCosts encoder_costs(job.model, own, job.software, costs.kernels, job.cluster);
    RankedPlan candidate;
    candidate.plan.tp = tp;
    candidate.plan.pp = pp;
    candidate.plan.stages = cut_encoders(job, encoder_costs, llm.micro_batches.front().front(), pp);
    save_memory(job, encoder_costs, llm, candidate.plan);
    add_schedules(job, llm, timeline, costs, encoder_costs, left, placement, std::move(candidate),
                  found);
    if (costs.progress) costs.progress->done(true);
  }
  if (found.fit.empty() && !found.too_large.empty()) {
    const auto memory_of_plan = [](const auto& found_plan) { return found_plan.first; };
    const Bytes least =
        memory_of_plan(*std::ranges::min_element(found.too_large, {}, memory_of_plan));
    for (auto& [memory, plan] : found.too_large)
      if (memory <= scaled(least, kAsFrugal)) found.fit.push_back(std::move(plan));
  }
  std::ranges::stable_sort(found.fit, {}, &RankedPlan::estimate);
  return std::move(found.fit);
}

Bytes frugal_encoder_memory(const Job& job, const CostContext& costs, const Plan& llm) {
  const Parallelism& p = job.parallelism;
  const auto layers = static_cast<int>(encoder_layers(job.model).size());
  EncoderPlan plan;
  plan.tp = p.tensor_model_parallel_size;
  for (int pp = 1; pp <= std::min(p.pipeline_model_parallel_size, layers); ++pp)
    if (p.pipeline_model_parallel_size % pp == 0) plan.pp = pp;
  plan.stages = cut_encoders(job, costs.layers, llm.micro_batches.front().front(), plan.pp);
  return memory_of(job, plan, costs.layers, llm, llm.micro_batches.front().size());
}

void order_kernels(const Job& job, const Plan& llm, const LlmTimeline& timeline,
                   const CostContext& costs, Placement placement, RankedPlan& ranked) {
  costs::LayerCosts encoder_costs = lower::encoder_layer_costs(job, ranked.plan, costs.kernels);
  const EncoderWork work = encoder_work(job, llm, ranked.plan, encoder_costs, costs);
  BubbleSchedule s = schedule_encoders(work, timeline, placement, ranked.most_waves, true);
  ranked.plan.waves = std::move(s.waves);
  ranked.plan.ranks = std::move(s.ranks);
}

}  // namespace mllmsim::optimus
