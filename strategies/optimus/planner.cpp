#include "strategies/optimus/planner.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <optional>

#include "sim/account/bubbles.hpp"
#include "sim/base/errors.hpp"
#include "sim/kernel/simulation.hpp"
#include "strategies/optimus/encoder_search.hpp"
#include "strategies/plans/partition.hpp"
#include "strategies/run/plan_memory.hpp"

namespace mllmsim::optimus {
namespace {

struct Simulated {
  Plan plan;
  Time span{};
  Time encoder_time{};
  double hidden = 1;  // share of the encoders' computation
  Bytes memory{};
};

// The share of the encoders' computation that runs where the LLM alone leaves its GPU idle: between
// its kernels, and as long before the first and after the last as it waits there anyway.
double hidden_share(const Program& program, const Timeline& timeline, const LlmTimeline& alone) {
  const auto computes = [](const Task& task) {
    return Program::kind_of(task.stream) == StreamKind::compute && task.kind != TaskKind::host &&
           task.kind != TaskKind::optimizer;
  };
  std::vector<Gap> computing(alone.ranks.size(), {kAlways, -kAlways});  // of the LLM
  for (std::size_t t = 0; t < program.tasks().size(); ++t) {
    const Task& task = program.tasks()[t];
    if (!computes(task) || task.chunk < 0) continue;
    Gap& rank = computing[Program::device_of(task.stream).value];
    rank.from = std::min(rank.from, timeline.start[t]);
    rank.to = std::max(rank.to, timeline.end[t]);
  }
  Time hidden{}, all{};
  for (std::size_t t = 0; t < program.tasks().size(); ++t) {
    const Task& task = program.tasks()[t];
    if (!computes(task) || task.chunk >= 0) continue;
    const std::size_t rank = Program::device_of(task.stream).value;
    const RankTimeline& llm = alone.ranks[rank];
    const Time from = std::max(timeline.start[t], computing[rank].from - llm.first_start);
    const Time to = std::min(timeline.end[t], computing[rank].to + (alone.span - llm.last_end));
    all += timeline.end[t] - timeline.start[t];
    hidden += std::max(Time{}, to - from);
  }
  return all > Time{} ? hidden / all : 1;
}

class Planner {
 public:
  Planner(Job job, const CostContext& costs) : job_(std::move(job)), costs_(costs) {
    job_.granularity = Granularity::kernel;
  }

  // The first replica of the first step stands for all while planning.
  Plan run(Plan llm) {
    const auto replicas = std::exchange(llm.micro_batches, {llm.micro_batches.front()});
    Alone alone = simulate_alone(llm);
    if (llm.schedule == ScheduleKind::interleaved && job_.software.overlap_p2p) {
      // Late micro-batches leave their encoders more time, if that costs the LLM nothing. Ranks
      // that exchange in turns would wait for each other for ever.
      Plan late = llm;
      late.schedule = ScheduleKind::interleaved_late;
      Alone other = simulate_alone(late);
      if (other.timeline.span <= alone.timeline.span) {
        llm = std::move(late);
        alone = std::move(other);
      }
    }
    const auto& [program, timeline, gaps] = alone;
    SearchSpace space = asked();
    const auto profile = memory_profile(program, timeline);
    const Bytes frugal = most_frugal_baseline();
    const Bytes limit =
        std::min(job_.cluster.gpu_memory, scaled(frugal, 1 + memory_overhead_limit()));
    for (std::size_t d = 0; d < llm.stages.size(); ++d)
      space.memory_left.push_back(limit - job_.software.memory_reserve -
                                  run::rank_state(job_, llm, static_cast<int>(d)).state.total() -
                                  peak(profile[d]));

    const Simulated coarse = best(llm, gaps, space, Placement::coarse, 1);
    Simulated chosen = coarse;
    if (std::get<std::string>(job_.options.at("schedule")) == "fine") {
      Simulated fine = best(llm, gaps, space, Placement::fine, 2);
      if (fine.span < chosen.span) chosen = std::move(fine);
    }
    tell(chosen, coarse, gaps.span, account(program, timeline), frugal);
    chosen.plan.micro_batches = replicas;
    return std::move(chosen.plan);
  }

 private:
  struct Alone {
    Program program;
    Timeline timeline;
    LlmTimeline gaps;
  };
  Alone simulate_alone(const Plan& llm) const {
    std::vector<std::vector<lower::PassSpan>> passes;
    Program program = lower::lower(job_, llm, &costs_, passes);
    Timeline timeline = simulate(program, costs_.network.link_bandwidths());
    LlmTimeline gaps = llm_timeline(llm, program, timeline, passes);
    return {std::move(program), std::move(timeline), std::move(gaps)};
  }

  double memory_overhead_limit() const {
    const double limit = std::get<double>(job_.options.at("memory_overhead_limit"));
    if (limit < 0) throw UserError("", "strategy.memory_overhead_limit", "expected 0 or more");
    return limit;
  }

  SearchSpace asked() const {
    const auto option = [&](const char* name, int of_llm) {
      const auto n = std::get<std::int64_t>(job_.options.at(name));
      if (n < 0 || (n > 0 && of_llm % n != 0))
        throw UserError("", std::string("strategy.") + name,
                        fmt::format("{} does not divide the LLM's {}", n, of_llm));
      return static_cast<int>(n);
    };
    const Parallelism& p = job_.parallelism;
    return {option("encoder_tensor_model_parallel_size", p.tensor_model_parallel_size),
            option("encoder_pipeline_model_parallel_size", p.pipeline_model_parallel_size),
            {}};
  }

  // Simulates the `tries` plans with the best estimates.
  Simulated best(const Plan& llm, const LlmTimeline& gaps, const SearchSpace& space,
                 Placement placement, std::size_t tries) const {
    std::vector<RankedPlan> ranked =
        search_encoder_plans(job_, llm, gaps, costs_, space, placement);
    check(!ranked.empty(), "one stage and one rank always divide");
    std::optional<Simulated> best;
    for (std::size_t i = 0; i < std::min(tries, ranked.size()); ++i) {
      order_kernels(job_, llm, gaps, costs_, placement, ranked[i]);
      Simulated s{llm, {}, ranked[i].encoder_time, 1, {}};
      s.plan.encoders = std::move(ranked[i].plan);
      const Program program = lower::lower(job_, s.plan, &costs_);
      const Timeline timeline = simulate(program, costs_.network.link_bandwidths());
      s.span = timeline.span;
      s.hidden = hidden_share(program, timeline, gaps);
      s.memory = run::peak_memory(job_, s.plan, memory_profile(program, timeline));
      if (!best || s.span < best->span) best = std::move(s);
    }
    return std::move(*best);
  }

  void tell(Simulated& chosen, const Simulated& coarse, Time bound,
            const std::vector<DeviceTime>& alone, Bytes frugal) const {
    std::vector<Fact>& facts = chosen.plan.facts;
    const EncoderPlan& e = *chosen.plan.encoders;
    const Parallelism own = lower::encoder_parallelism(job_, e);
    std::vector<std::size_t> share(
        static_cast<std::size_t>(e.groups(job_.parallelism.pipeline_model_parallel_size)));
    for (const EncoderWave& w : e.waves) share[w.group] += w.micro_batches.size();
    facts.push_back(
        {"encoder_plan", fmt::format("dp {}  pp {}  tp {}: micro-batches {} to {}",
                                     own.data_parallel_size, e.pp, e.tp, fmt::join(share, " + "),
                                     share.size() > 1 ? "groups of ranks" : "all ranks")});
    const auto seconds = [&](const char* key, Time t) {
      facts.push_back({key, fmt::format("{:.3f} s", to_seconds(t).value), to_seconds(t).value});
    };
    const auto percent = [&](const char* key, double v) {
      facts.push_back({key, fmt::format("{:.1f}%", 100 * v), v});
    };
    seconds("encoder_s", chosen.encoder_time);
    seconds("bound_s", bound);  // the LLM alone: all encoder work hidden
    seconds("coarse_s", coarse.span);
    percent("hidden_share_coarse", coarse.hidden);
    percent("hidden_share", chosen.hidden);
    tell_bubbles(facts, bound, alone);
    percent("memory_overhead_share", chosen.memory / frugal - 1);
  }

  // Of the LLM alone, as shares of its step: what there is to fill.
  static void tell_bubbles(std::vector<Fact>& facts, Time step,
                           const std::vector<DeviceTime>& alone) {
    for (std::size_t k = 0; k < kBubbleKinds; ++k) {
      Time sum{};
      for (const DeviceTime& d : alone) sum += d.bubbles.times[k];
      if (sum == Time{}) continue;
      const double share = sum / (step * static_cast<std::int64_t>(alone.size()));
      facts.push_back({fmt::format("llm_alone_{}_share", Names<BubbleKind>::list[k]),
                       fmt::format("{:.1f}%", 100 * share), share});
    }
  }

  Bytes most_frugal_baseline() const {
    std::optional<Bytes> least;
    Job job = job_;
    job.granularity = Granularity::stage;
    for (const char* name : {"baseline", "balanced"}) {
      const StrategyInfo* info = find_strategy(name);
      for (const OptionSpec& o : info->options) job.options[o.name] = o.default_value;
      Plan plan = info->make()->plan(job, costs_);
      plan.micro_batches = {plan.micro_batches.front()};
      const Program program = lower::lower(job, plan, &costs_);
      const Timeline timeline = simulate(program, costs_.network.link_bandwidths());
      const Bytes m = run::peak_memory(job, plan, memory_profile(program, timeline));
      least = least ? std::min(*least, m) : m;
    }
    return *least;
  }

  Job job_;
  const CostContext& costs_;
};

}  // namespace

std::vector<Layer> llm_layers(const Model& model) {
  std::vector<Layer> out;
  for (const Layer& layer : layers_of(model))
    if (is_llm(model, layer)) out.push_back(layer);
  return out;
}

Plan plan_of_llm(const Job& job, const CostContext& costs,
                 std::shared_ptr<const data::Batches> pass) {
  const std::vector<Layer> layers = llm_layers(job.model);
  const MicroBatch mb = plans::typical_micro_batch(job, pass.get());
  std::vector<double> seconds;
  for (const Layer& layer : layers) {
    const costs::LayerTotals t = costs.layers.total(layer, mb, plans::recompute_of(job, layer));
    seconds.push_back(to_seconds(t.forward.time + t.recompute.time + t.backward.time).value);
  }
  const Parallelism& p = job.parallelism;
  const auto stages = static_cast<std::size_t>(p.pipeline_model_parallel_size) *
                      static_cast<std::size_t>(p.virtual_pipeline_stages);
  if (stages > layers.size())
    throw UserError("", "parallelism.virtual_pipeline_stages",
                    fmt::format("{} model stages for {} layers of the LLM, which has the pipeline "
                                "to itself",
                                stages, layers.size()));
  return plans::plan_from(
      job, plans::stages_from(job, layers, plans::balanced_cut(seconds, stages)), std::move(pass));
}

Plan plan_encoders(const Job& job, const CostContext& costs, Plan llm) {
  if (job.parallelism.zero_stage > 1)
    throw UserError("", "parallelism.zero_stage", "encoders in bubbles need zero_stage 0 or 1");
  if (job.model.encoders.empty()) return llm;
  return Planner(job, costs).run(std::move(llm));
}

std::vector<OptionSpec> encoder_options() {
  return {{"schedule",
           "fine: kernel by kernel into all bubbles; coarse: only before and after the LLM",
           std::string("fine"),
           {"fine", "coarse"}},
          {"encoder_tensor_model_parallel_size",
           "of the encoders; 0: the best that divides the LLM's", std::int64_t{0}},
          {"encoder_pipeline_model_parallel_size",
           "of the encoders; 0: the best that divides the LLM's", std::int64_t{0}},
          {"memory_overhead_limit",
           "encoder plans may need this share more memory than the most frugal baseline", 0.12}};
}

}  // namespace mllmsim::optimus
