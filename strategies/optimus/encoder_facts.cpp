#include "strategies/optimus/encoder_facts.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "strategies/lower/encoder_kernels.hpp"

namespace mllmsim::optimus {
namespace {

// Of the LLM alone, as shares of its step: what there is to fill.
void add_bubbles(std::vector<Fact>& facts, Time step, const std::vector<DeviceTime>& alone) {
  for (std::size_t k = 0; k < kBubbleKinds; ++k) {
    Time sum{};
    for (const DeviceTime& d : alone) sum += d.bubbles.times[k];
    if (sum == Time{}) continue;
    const double share = sum / (step * static_cast<std::int64_t>(alone.size()));
    facts.push_back({fmt::format("llm_alone_{}_share", Names<BubbleKind>::list[k]),
                     fmt::format("{:.1f}%", 100 * share), share});
  }
}

}  // namespace

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

void add_encoder_facts(const Job& job, const SimulatedPlan& coarse, Time bound,
                       const std::vector<DeviceTime>& alone, Bytes frugal, SimulatedPlan& chosen) {
  std::vector<Fact>& facts = chosen.plan.facts;
  const EncoderPlan& e = *chosen.plan.encoders;
  const Parallelism own = lower::encoder_parallelism(job, e);
  std::vector<std::size_t> share(
      static_cast<std::size_t>(e.groups(job.parallelism.pipeline_model_parallel_size)));
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
  add_bubbles(facts, bound, alone);
  percent("memory_overhead_share", chosen.memory / frugal - 1);
}

}  // namespace mllmsim::optimus
