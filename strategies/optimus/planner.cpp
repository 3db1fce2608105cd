#include "strategies/optimus/planner.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "sim/base/errors.hpp"
#include "sim/base/progress.hpp"
#include "strategies/optimus/encoder_facts.hpp"
#include "strategies/optimus/encoder_search.hpp"
#include "strategies/plans/partition.hpp"
#include "strategies/plans/plans.hpp"
#include "strategies/step/plan_memory.hpp"
#include "strategies/step/simulate_plan.hpp"

namespace mllmsim::optimus {
namespace {

constexpr const char* kEncoderTp = "encoder_tensor_model_parallel_size";
constexpr const char* kEncoderPp = "encoder_pipeline_model_parallel_size";

// Plans with the best estimates, which are simulated.
constexpr std::size_t kCoarseTries = 1, kFineTries = 2;

class Planner {
 public:
  Planner(Job job, const CostContext& costs) : job_(std::move(job)), costs_(costs) {
    job_.granularity = Granularity::kernel;
  }

  // The first replica of the first step stands for all while planning.
  Plan run(Plan llm) {
    SearchSpace space = asked();
    const bool fine_too = option<std::string>(job_.options, "schedule") == "fine";
    begin(encoder_plans(job_, space), fine_too);
    const auto replicas = std::exchange(llm.micro_batches, {llm.micro_batches.front()});
    Alone alone = simulate_alone(llm);
    if (llm.schedule == ScheduleKind::interleaved && job_.software.overlap_p2p) {
      // Late micro-batches leave their encoders more time, if that costs the LLM nothing. Ranks
      // that exchange in turns would wait for each other for ever.
      Plan late = llm;
      late.schedule = ScheduleKind::interleaved_late;
      Alone other = simulate_alone(late);
      if (other.gaps.span <= alone.gaps.span) {
        llm = std::move(late);
        alone = std::move(other);
      }
    }
    const LlmTimeline& gaps = alone.gaps;
    done();
    const Bytes frugal = most_frugal_baseline();
    done();
    const Bytes limit =
        std::min(job_.cluster.gpu_memory,
                 scaled(frugal, 1 + option<double>(job_.options, "memory_overhead_limit")));
    for (std::size_t d = 0; d < llm.stages.size(); ++d)
      space.memory_left.push_back(
          limit - step::rank_state(job_, llm, static_cast<int>(d)).held.total() - alone.peaks[d]);

    const SimulatedPlan coarse = best(llm, gaps, space, Placement::coarse, kCoarseTries);
    SimulatedPlan chosen = coarse;
    if (fine_too) {
      SimulatedPlan fine = best(llm, gaps, space, Placement::fine, kFineTries);
      if (better(fine, chosen)) chosen = std::move(fine);
    }
    add_encoder_facts(job_, coarse, gaps.span, alone.times, frugal, chosen);
    chosen.plan.micro_batches = replicas;
    return std::move(chosen.plan);
  }

 private:
  // What is kept of the LLM's step: its program is as large as any that is tried later.
  struct Alone {
    LlmTimeline gaps;
    std::vector<DeviceTime> times;
    std::vector<Bytes> peaks;  // activations, by rank
  };
  Alone simulate_alone(const Plan& llm) const {
    std::vector<std::vector<lower::PassSpan>> passes;
    const SimulatedStep step = simulate_plan(job_, llm, costs_, passes);
    Alone out{llm_timeline(llm, step.program, step.timeline, passes), step.device_times(), {}};
    for (const auto& profile : step.memory()) out.peaks.push_back(peak(profile));
    return out;
  }

  SearchSpace asked() const {
    return {static_cast<int>(option<std::int64_t>(job_.options, kEncoderTp)),
            static_cast<int>(option<std::int64_t>(job_.options, kEncoderPp)),
            {}};
  }

  // Whether `a` is the better plan: one that fits as simulated, whatever was estimated, then the
  // quicker one.
  bool better(const SimulatedPlan& a, const SimulatedPlan& b) const {
    const bool a_fits = a.memory <= job_.cluster.gpu_memory;
    const bool b_fits = b.memory <= job_.cluster.gpu_memory;
    return a_fits != b_fits ? a_fits : a.span < b.span;
  }

  // Simulates the `tries` plans with the best estimates.
  SimulatedPlan best(const Plan& llm, const LlmTimeline& gaps, const SearchSpace& space,
                     Placement placement, std::size_t tries) const {
    std::vector<RankedPlan> ranked =
        search_encoder_plans(job_, llm, gaps, costs_, space, placement);
    check(!ranked.empty(), "one stage and one rank always divide");
    std::optional<SimulatedPlan> best;
    for (std::size_t i = 0; i < std::min(tries, ranked.size()); ++i) {
      order_kernels(job_, llm, gaps, costs_, placement, ranked[i]);
      SimulatedPlan s{llm, {}, ranked[i].encoder_time, 1, {}};
      s.plan.encoders = std::move(ranked[i].plan);
      const SimulatedStep step = simulate_plan(job_, s.plan, costs_);
      s.span = step.span();
      s.hidden = hidden_share(step.program, step.timeline, gaps);
      s.memory = step::peak_memory(job_, s.plan, step.memory());
      if (!best || better(s, *best)) best = std::move(s);
      done();
    }
    for (std::size_t missing = ranked.size(); missing < tries; ++missing) done();
    return std::move(*best);
  }

  // A step of planning is a plan that is simulated or an encoder plan that is scheduled.
  void begin(std::size_t encoder_plans, bool fine_too) const {
    const std::size_t steps = 2 + encoder_plans + kCoarseTries;
    if (costs_.progress)
      costs_.progress->begin(fine_too ? steps + encoder_plans + kFineTries : steps,
                             "steps of planning");
  }
  void done() const {
    if (costs_.progress) costs_.progress->done(true);
  }

  Bytes most_frugal_baseline() const {
    std::optional<Bytes> least;
    Job job = job_;
    job.granularity = Granularity::stage;
    job.options.clear();  // theirs, not ours
    for (const Strategy& strategy : {plans::baseline_strategy(), plans::balanced_strategy()}) {
      Plan plan = make_plan(strategy, job, costs_);
      plan.micro_batches = {plan.micro_batches.front()};
      const Bytes m = step::peak_memory(job, plan, simulate_plan(job, plan, costs_).memory());
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
  const std::size_t stages = plans::model_stages(job);
  if (stages > layers.size())
    throw UserError("", "parallelism.virtual_pipeline_stages",
                    fmt::format("{} model stages for {} layers of the LLM, which has the pipeline "
                                "to itself",
                                stages, layers.size()));
  const MicroBatch mb = plans::typical_micro_batch(job, pass.get());
  const auto sizes = plans::cut_by_time(job, costs.layers, layers, mb, stages);
  return plans::plan_from(job, plans::stages_from(job, layers, sizes), std::move(pass));
}

Plan plan_encoders(const Job& job, const CostContext& costs, Plan llm) {
  if (job.parallelism.zero_stage > 1)
    throw UserError("", "parallelism.zero_stage", "encoders in bubbles need zero_stage 0 or 1");
  if (job.model.encoders.empty()) return llm;
  return Planner(job, costs).run(std::move(llm));
}

std::vector<OptionSpec> encoder_options() {
  const OptionRange size{0, 1e6}, share{0, 1000};
  return {
      {.name = "schedule",
       .description =
           "fine: kernel by kernel into all bubbles; coarse: only before and after the LLM",
       .default_value = std::string("fine"),
       .choices = {"fine", "coarse"}},
      {.name = kEncoderTp,
       .description = "of the encoders; 0: the best that divides the LLM's",
       .default_value = std::int64_t{0},
       .range = size},
      {.name = kEncoderPp,
       .description = "of the encoders; 0: the best that divides the LLM's",
       .default_value = std::int64_t{0},
       .range = size},
      {.name = "memory_overhead_limit",
       .description = "encoder plans may need this share more memory than the most frugal baseline",
       .default_value = 0.12,
       .range = share}};
}

std::vector<Problem> check_encoder_sizes(const Job& job) {
  std::vector<Problem> out;
  const auto divides = [&](const char* name, int of_llm) {
    const auto n = option<std::int64_t>(job.options, name);
    if (n > 0 && of_llm % n != 0)
      out.push_back({"", fmt::format("strategy.{}", name),
                     fmt::format("expected 0 or a divisor of the LLM's {}, found {}", of_llm, n)});
  };
  divides(kEncoderTp, job.parallelism.tensor_model_parallel_size);
  divides(kEncoderPp, job.parallelism.pipeline_model_parallel_size);
  const std::size_t layers = layers_of(job.model).size() - llm_layers(job.model).size();
  const auto pp = option<std::int64_t>(job.options, kEncoderPp);
  if (layers > 0 && pp > static_cast<std::int64_t>(layers))
    out.push_back({"", fmt::format("strategy.{}", kEncoderPp),
                   fmt::format("expected at most the encoders' {} layers, found {}", layers, pp)});
  return out;
}

}  // namespace mllmsim::optimus
