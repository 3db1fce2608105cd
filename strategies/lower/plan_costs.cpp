#include "strategies/lower/plan_costs.hpp"

#include <algorithm>
#include <optional>

#include "cost_models/layers/layer_costs.hpp"
#include "sim/base/errors.hpp"

namespace mllmsim::lower {
namespace {

void add(costs::KernelTotals& sum, const costs::KernelTotals& totals, int count) {
  sum.time += totals.time * count;
  sum.communication += totals.communication * count;
  sum.flops += totals.flops * static_cast<double>(count);
  sum.beside_other_pass += totals.beside_other_pass * count;
  sum.launches += totals.launches * count;
  sum.expert_launches += totals.expert_launches * count;
  for (std::size_t s = 0; s < costs::kSources; ++s) sum.by_source[s] += totals.by_source[s] * count;
}

}  // namespace

std::vector<std::uint32_t> shapes_of(const Plan& plan) {
  std::vector<std::uint32_t> shapes;
  const MicroBatch* before = nullptr;
  std::uint32_t shape = 0;
  for (const std::vector<MicroBatch>& replica : plan.micro_batches)
    for (const MicroBatch& mb : replica) {
      if (before && *before != mb) ++shape;
      before = &mb;
      shapes.push_back(shape);
    }
  return shapes;
}

PlanCosts::PlanCosts(const Plan& plan, costs::LayerCosts& layers)
    : layers_(layers),
      ranks_(plan.stages.size()),
      chunks_(plan.stages.front().size()),
      micro_batches_(plan.micro_batches.front().size()),
      shapes_(shapes_of(plan)) {
  for (const std::vector<Chunk>& chunks : plan.stages)
    for (const Chunk& chunk : chunks) {
      auto& runs = chunk_runs_.emplace_back();
      for (const PlannedLayer& planned : chunk) {
        std::size_t kind = kind_of(planned);
        if (kind == kinds_.size()) kinds_.push_back({planned, 0});
        ++kinds_[kind].count;
        const bool behind = planned.behind > 0;
        if (runs.empty() || runs.back().kind != kind || runs.back().behind != behind)
          runs.push_back({kind, 1, behind});
        else
          ++runs.back().count;
      }
    }
  const std::size_t shapes = shapes_.back() + std::size_t{1};
  totals_.reserve(shapes * kinds_.size());
  costs_.reserve(shapes * chunk_runs_.size());
  std::vector<const MicroBatch*> unlike;  // the one before
  std::size_t at = 0;
  for (const auto& replica : plan.micro_batches) {
    check(replica.size() == micro_batches_, "replicas have equally many micro-batches");
    for (const MicroBatch& mb : replica)
      if (shapes_[at++] == unlike.size()) unlike.push_back(&mb);
  }
  add_totals(unlike, layers);
  for (std::size_t first = 0; first < totals_.size(); first += kinds_.size())
    for (const auto& runs : chunk_runs_) {
      ChunkCost& cost = costs_.emplace_back();
      Bytes unit{}, most{};  // brought back together; that its backward holds
      for (const Run& run : runs) add_run(cost, unit, most, totals_[first + run.kind], run);
      cost.working = most - cost.saved;
    }
}

// While one micro-batch is looked up, the next two are fetched from memory.
void PlanCosts::add_totals(const std::vector<const MicroBatch*>& micro_batches,
                           costs::LayerCosts& layers) {
  std::vector<std::optional<std::uint64_t>> expected(2 * kinds_.size());
  for (std::size_t i = 0; i < micro_batches.size() + 2; ++i) {
    for (std::size_t k = 0; k < kinds_.size(); ++k) {
      const PlannedLayer& p = kinds_[k].planned;
      if (auto& one = expected[(i + 1) % 2 * kinds_.size() + k]) layers.fetch_total(*one);
      auto& other = expected[i % 2 * kinds_.size() + k];
      other.reset();
      if (i < micro_batches.size())
        other = layers.expect_total(p.layer, *micro_batches[i], p.recompute);
    }
    for (std::size_t k = 0; i >= 2 && k < kinds_.size(); ++k) {
      const PlannedLayer& p = kinds_[k].planned;
      totals_.push_back(layers.total(p.layer, *micro_batches[i - 2], p.recompute));
    }
  }
}

void PlanCosts::add_run(ChunkCost& cost, Bytes& unit, Bytes& most, const costs::LayerTotals& t,
                        const Run& run) const {
  add(cost.forward, t.forward, run.count);
  add(cost.backward, t.recompute, run.count);
  add(cost.backward, t.backward, run.count);
  cost.recompute += (t.recompute.time - t.recompute.communication) * run.count;
  if (!run.behind) cost.saved += t.saved * run.count;
  unit = run.behind ? unit + (t.saved + t.recomputed) * run.count : t.recomputed;
  // A layer that no gradient reaches is passed in no time and works with nothing.
  const bool passed = t.recompute.time + t.backward.time == Time{};
  most = std::max(most, passed ? cost.saved : cost.saved + unit + t.working - t.recomputed);
}

std::size_t PlanCosts::kind_of(const PlannedLayer& layer) const {
  std::size_t kind = 0;
  while (kind < kinds_.size() && !alike(layers_, kinds_[kind].planned, layer)) ++kind;
  return kind;
}

const costs::LayerTotals& PlanCosts::layer(std::size_t replica, std::size_t micro_batch,
                                           const PlannedLayer& layer) const {
  return totals_[shape(replica, micro_batch) * kinds_.size() + kind_of(layer)];
}

PlanCosts::Sum PlanCosts::sum() const {
  Sum sum;
  for (const std::uint32_t shape : shapes_)
    for (std::size_t k = 0; k < kinds_.size(); ++k) {
      const costs::LayerTotals& totals = totals_[shape * kinds_.size() + k];
      const int count = kinds_[k].count;
      sum.model_flops += totals.model_flops * static_cast<double>(count);
      for (const costs::KernelTotals* t : {&totals.forward, &totals.recompute, &totals.backward})
        add(sum.kernels, *t, count);
    }
  return sum;
}

}  // namespace mllmsim::lower
