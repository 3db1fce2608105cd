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
#include "strategies/plans/partition.hpp"
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
    costs::MemoryBound measured = k;  // the measuring program has one kernel for both
    if (measured.op >= costs::MemoryOp::activation) measured.op = costs::MemoryOp::elementwise;
    return record(measured, costs_.memory_bound(k));
  }
  costs::Cost collective(const costs::Collective& k) const override {
    return record(k, costs_.collective(k));
  }
  costs::Cost chunked_scan(const costs::ChunkedScan& k) const override {
    return costs_.chunked_scan(k);  // the measuring program has no kernel for it
  }
  costs::Cost point_to_point(const costs::PointToPoint& k) const override {
    return costs_.point_to_point(k);
  }
  costs::Cost token_exchange(const costs::TokenExchange& k) const override {
    return costs_.token_exchange(k);
  }
  double gemm_slowdown_beside_collective() const override {
    return costs_.gemm_slowdown_beside_collective();
  }
  FlopsPerSecond peak(NumberFormat format) const override { return costs_.peak(format); }

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
    lengths += fmt::format("{}{} x {}{}", lengths.empty() ? "" : ", ", g.count, g.length,
                           k.cross ? fmt::format(" to {}", g.cross_keys) : "");
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
  if (k.cross) return;  // the measuring program has none
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

// Every micro-batch passes every chunk once; those of a plan without a data set are all alike.
std::map<Work, double> work_of(const MicroBatch& mb, const std::vector<Chunk>& chunks) {
  std::map<Work, double> work;
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
  const std::map<Kernel, Entry>& times() const { return times_; }

 private:
  const Job& job_;
  Recorder recorder_;
  std::map<Kernel, Entry> times_;
  Seconds total_{};
};

KernelTimes kernel_times(const Job& job, const Plan& plan, const costs::KernelCosts& kernels) {
  const MicroBatch typical = plans::typical_micro_batch(job, plan.pass.get());
  KernelTimes times(job, kernels);
  std::vector<Chunk> pipeline;
  for (const std::vector<Chunk>& rank : plan.stages)
    pipeline.insert(pipeline.end(), rank.begin(), rank.end());
  times.add(job.parallelism, work_of(typical, pipeline));
  if (plan.encoders)  // beside the pipeline, with parallel sizes of their own
    times.add(lower::encoder_parallelism(job, *plan.encoders),
              work_of(typical, plan.encoders->stages));
  return times;
}

// Shares of kernels, added up over runs.
class Shares {
 public:
  void add(const KernelTimes& times) {
    for (const auto& [kernel, entry] : times.times()) {
      Share& sum = shares_[kernel];
      sum.share += entry.time / times.total();
      sum.source = entry.source;
    }
    ++runs_;
  }

  Gaps gaps(const GapsAsked& asked) const {
    std::vector<std::pair<Kernel, Share>> sorted(shares_.begin(), shares_.end());
    std::stable_sort(sorted.begin(), sorted.end(),
                     [](const auto& a, const auto& b) { return a.second.share > b.second.share; });
    Gaps out;
    for (const auto& [kernel, sum] : sorted) {
      if (!asked.all && sum.source < costs::Source::transferred) continue;
      if (out.gaps.size() == asked.most) break;
      std::visit(
          [&, share = sum.share / runs_, source = sum.source](const auto& k) {
            out.gaps.push_back({text(k), source, share});
            add_shape(out.shapes, k);
          },
          kernel);
    }
    return out;
  }

 private:
  struct Share {
    double share = 0;
    costs::Source source = costs::Source::estimate;
  };
  std::map<Kernel, Share> shares_;
  int runs_ = 0;
};

// A word as a shell takes it.
std::string for_shell(const std::string& word) {
  const auto plain = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           std::string_view("_-./=+,:").find(c) != std::string_view::npos;
  };
  if (std::all_of(word.begin(), word.end(), plain)) return word;
  std::string out = "'";
  for (const char c : word) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return out + "'";
}

}  // namespace

Gaps gaps_of(const std::vector<scenarios::Scenario>& scenarios, const GapsAsked& asked) {
  Shares shares;
  for (const scenarios::Scenario& scenario : scenarios) {
    const Job& job = scenario.job;
    if (job.given_times)
      throw UserError(scenario.file.string(), "given_times",
                      "a run with given times has no kernels");
    const auto kernels = costs::read_kernel_costs(scenario.calibration, job.cluster);
    run::JobCosts costs(job, *kernels);
    try {
      shares.add(kernel_times(job, make_plan(job, costs.context()), *kernels));
    } catch (const UserError& e) {
      throw scenario.placed(e);
    }
  }
  return shares.gaps(asked);
}

Gaps gaps_of(const scenarios::Scenario& scenario, const Job& job, const Plan& plan,
             const GapsAsked& asked) {
  const auto kernels = costs::read_kernel_costs(scenario.calibration, job.cluster);
  Shares shares;
  shares.add(kernel_times(job, plan, *kernels));
  return shares.gaps(asked);
}

std::string measure_command(const std::vector<std::string>& words) {
  std::string runs;
  for (const std::string& word : words) runs += (runs.empty() ? "" : " ") + for_shell(word);
  return fmt::format(
      "mllmsim calibrate gaps {} --top {} --out shapes.jsonl && mllmsim-calibrate --shapes "
      "shapes.jsonl",
      runs, kMeasuredFirst);
}

}  // namespace mllmsim::analysis
