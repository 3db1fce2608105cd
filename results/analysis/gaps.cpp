#include "results/analysis/gaps.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <variant>

#include "cost_models/calibration/calibrated_costs.hpp"
#include "cost_models/kernels/kernel_costs.hpp"
#include "cost_models/kernels/names.hpp"
#include "cost_models/layers/layer_costs.hpp"
#include "sim/base/errors.hpp"
#include "strategies/lower/encoder_kernels.hpp"
#include "strategies/registry/registry.hpp"
#include "strategies/run/job_costs.hpp"

namespace mllmsim::analysis {
namespace {

using Kernel = std::variant<costs::Gemm, costs::Attention, costs::MemoryBound, costs::Collective>;

// Passes every question on and remembers it.
class Recorder : public costs::KernelCosts {
 public:
  struct Entry {
    Kernel kernel;
    costs::Cost cost;
  };

  explicit Recorder(const costs::KernelCosts& costs) : costs_(costs) {}
  std::vector<Entry> take() { return std::exchange(entries_, {}); }

  costs::Cost gemm(const costs::Gemm& k) const override { return record(k, costs_.gemm(k)); }
  costs::Cost attention(const costs::Attention& k) const override {
    return record(k, costs_.attention(k));
  }
  costs::Cost memory_bound(const costs::MemoryBound& k) const override {
    return record(k, costs_.memory_bound(k));
  }
  costs::Cost collective(const costs::Collective& k) const override {
    return record(k, costs_.collective(k));
  }
  costs::Cost point_to_point(const costs::PointToPoint& k) const override {
    return costs_.point_to_point(k);
  }
  double gemm_slowdown_beside_collective() const override {
    return costs_.gemm_slowdown_beside_collective();
  }
  FlopsPerSecond peak() const override { return costs_.peak(); }

 private:
  costs::Cost record(const Kernel& kernel, costs::Cost cost) const {
    entries_.push_back({kernel, cost});
    return cost;
  }

  const costs::KernelCosts& costs_;
  mutable std::vector<Entry> entries_;
};

std::string text(const costs::Gemm& k) {
  const std::string batch = k.batch > 1 ? fmt::format("{} of ", k.batch) : "";
  return fmt::format("gemm {}{} x {} x {} {}", batch, k.m, k.n, k.k, name_of(k.pass));
}
std::string text(const costs::Attention& k) {
  std::string lengths;
  for (const SequenceGroup& g : k.sequences)
    lengths += fmt::format("{}{} x {}", lengths.empty() ? "" : ", ", g.count, g.length);
  return fmt::format("attention {} heads {} of {}{}{}", lengths, k.heads, k.head_dim,
                     k.causal ? " causal" : "", k.backward ? " backward" : "");
}
std::string text(const costs::MemoryBound& k) {
  return fmt::format("{} {:.1f} MB{}", name_of(k.op), static_cast<double>(k.bytes.value) / 1e6,
                     k.rows > 0 ? fmt::format(", {} rows of {}", k.rows, k.row_length) : "");
}
std::string text(const costs::Collective& k) {
  return fmt::format("{} {:.1f} MB, {} ranks on {} nodes", name_of(k.op),
                     static_cast<double>(k.bytes.value) / 1e6, k.group.ranks, k.group.nodes);
}

void add_shape(fit::RawData& raw, const costs::Gemm& k) { raw.gemm.push_back({{k, {}}, false}); }
void add_shape(fit::RawData& raw, const costs::Attention& k) {
  for (const SequenceGroup& g : k.sequences) {
    costs::Attention one = k;
    one.sequences = {g};
    raw.attention.push_back({{one, {}}, false});
  }
}
// The measuring program counts values, not bytes: an addition moves 6 bytes per value, Adam 30 per
// parameter.
void add_shape(fit::RawData& raw, costs::MemoryBound k) {
  if (k.rows == 0) {
    k.rows = 1;
    k.row_length =
        std::max<std::int64_t>(1, k.bytes.value / (k.op == costs::MemoryOp::optimizer ? 30 : 6));
  }
  raw.memory_bound.push_back({k, {}});
}
void add_shape(fit::RawData& raw, const costs::Collective& k) {
  raw.collectives.push_back({k, {}});
}

// How often each kind of layer runs with each micro-batch and recompute choice. Blocks of a module
// are alike.
struct Work {
  Layer layer;
  Recompute recompute;
  MicroBatch micro_batch;
  auto operator<=>(const Work&) const = default;
};

// Every micro-batch passes every chunk once.
std::map<Work, double> work_of(const Plan& plan, const std::vector<Chunk>& chunks) {
  std::map<Work, double> work;
  for (const auto& micro_batches : plan.micro_batches)
    for (const MicroBatch& mb : micro_batches)
      for (const Chunk& chunk : chunks)
        for (const PlannedLayer& p : chunk)
          work[{{p.layer.kind, p.layer.module, 0}, p.recompute, mb}] += 1;
  return work;
}

// The kernels of a step, with the sum of their times.
class KernelTimes {
 public:
  struct Entry {
    Seconds time{};
    costs::Source source = costs::Source::estimate;
  };

  KernelTimes(const Job& job, const costs::KernelCosts& kernels) : job_(job), recorder_(kernels) {}

  void add(const Parallelism& parallelism, const std::map<Work, double>& all) {
    for (const auto& [work, count] : all) {
      // Fresh ones each time: they would answer from their memory otherwise.
      costs::LayerCosts(job_.model, parallelism, job_.software, recorder_, job_.cluster)
          .cost(work.layer, work.micro_batch, work.recompute);
      for (const Recorder::Entry& e : recorder_.take()) {
        Entry& sum = times_[e.kernel];
        sum.time += e.cost.time * count;
        sum.source = e.cost.source;
        total_ += e.cost.time * count;
      }
    }
  }

  Seconds total() const { return total_; }

  // Longest first.
  std::vector<std::pair<Kernel, Entry>> sorted() const {
    std::vector<std::pair<Kernel, Entry>> out(times_.begin(), times_.end());
    std::stable_sort(out.begin(), out.end(),
                     [](const auto& a, const auto& b) { return a.second.time > b.second.time; });
    return out;
  }

 private:
  const Job& job_;
  Recorder recorder_;
  std::map<Kernel, Entry> times_;
  Seconds total_{};
};

KernelTimes kernel_times(const Job& job, const costs::KernelCosts& kernels) {
  run::JobCosts costs(job, kernels);
  const Plan plan = make_plan(job, costs.context());
  KernelTimes times(job, kernels);
  std::vector<Chunk> pipeline;
  for (const std::vector<Chunk>& rank : plan.stages)
    pipeline.insert(pipeline.end(), rank.begin(), rank.end());
  times.add(job.parallelism, work_of(plan, pipeline));
  if (plan.encoders)  // beside the pipeline, with parallel sizes of their own
    times.add(lower::encoder_parallelism(job, *plan.encoders),
              work_of(plan, plan.encoders->stages));
  return times;
}

}  // namespace

Gaps gaps_of(const scenarios::Scenario& scenario, bool all) {
  const Job& job = scenario.job;
  if (job.given_times)
    throw UserError(scenario.file.string(), "given_times", "a run with given times has no kernels");
  const auto kernels = costs::read_kernel_costs(scenario.calibration, job.cluster);
  const KernelTimes times = kernel_times(job, *kernels);
  Gaps out;
  for (const auto& [kernel, sum] : times.sorted()) {
    if (!all && sum.source < costs::Source::transferred) continue;
    std::visit(
        [&, time = sum.time, source = sum.source](const auto& k) {
          out.gaps.push_back({text(k), source, time / times.total()});
          add_shape(out.shapes, k);
        },
        kernel);
  }
  return out;
}

}  // namespace mllmsim::analysis
