#include "strategies/optimus/llm_timeline.hpp"

namespace mllmsim::optimus {
namespace {

RankTimeline rank_timeline(const Program& program, const Timeline& timeline,
                           const std::vector<lower::PassSpan>& passes) {
  RankTimeline out;
  out.passes = static_cast<std::uint32_t>(passes.size());
  Time compute_free = -kAlways, tp_free = -kAlways;
  for (std::uint32_t p = 0; p < passes.size(); ++p) {
    std::uint32_t kernel = 0;
    if (passes[p].start)
      for (std::uint32_t t = passes[p].start.value; t < passes[p].first.value; ++t) {
        if (program.tasks()[t].kind != TaskKind::host) continue;
        if (timeline.start[t] > compute_free)
          out.compute.push_back({compute_free, timeline.start[t], false});
        compute_free = timeline.end[t];
      }
    for (std::uint32_t t = passes[p].first.value; t <= passes[p].last.value; ++t) {
      const Time start = timeline.start[t], end = timeline.end[t];
      const bool tp = Program::kind_of(program.tasks()[t].stream) == StreamKind::tp;
      Time& free = tp ? tp_free : compute_free;
      if (start > free) (tp ? out.tp : out.compute).push_back({free, start, kernel > 0});
      free = end;
      if (out.kernels.empty()) out.first_start = start;
      out.kernels.push_back({start, end, p, kernel++});
    }
  }
  out.last_end = std::max(compute_free, tp_free);
  out.compute.push_back({compute_free, kAlways});
  out.tp.push_back({tp_free, kAlways});
  return out;
}

}  // namespace

LlmTimeline llm_timeline(const Plan& plan, const Program& program, const Timeline& timeline,
                         const std::vector<std::vector<lower::PassSpan>>& passes) {
  LlmTimeline out;
  out.span = timeline.span;
  for (const std::vector<lower::PassSpan>& rank : passes)
    out.ranks.push_back(rank_timeline(program, timeline, rank));
  const auto n = plan.micro_batches.front().size();
  out.forward_start.resize(n);
  out.backward_end.resize(n);
  const auto order = schedule(plan.schedule, static_cast<int>(plan.stages.size()),
                              static_cast<int>(plan.stages.front().size()),
                              static_cast<std::int64_t>(n), 0, plan.micro_batch_group);
  for (std::size_t i = 0; i < order.size(); ++i) {
    if (order[i].chunk != 0) continue;
    if (order[i].forward)
      out.forward_start[order[i].micro_batch] = timeline.start[passes[0][i].first.value];
    else
      out.backward_end[order[i].micro_batch] = timeline.end[passes[0][i].last.value];
  }
  return out;
}

}  // namespace mllmsim::optimus
