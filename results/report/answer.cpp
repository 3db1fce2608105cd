// The first thing a page says: what wins, by how much, and where the rest of the time goes.
#include <fmt/format.h>

#include <algorithm>

#include "results/analysis/speed_up.hpp"
#include "results/charts/span_look.hpp"
#include "results/report/html.hpp"
#include "results/report/sections.hpp"
#include "results/run/run_fields.hpp"
#include "results/text/figures.hpp"
#include "results/text/words.hpp"

namespace mllmsim::report {
namespace {

using Group = std::vector<const results::RunResult*>;  // of one work

std::vector<Group> groups_of(std::span<const ReportRun> runs) {
  std::vector<Group> groups;
  for (const ReportRun& r : runs) {
    const auto at = std::ranges::find_if(
        groups, [&](const Group& g) { return g.front()->work == r.result.work; });
    (at == groups.end() ? *groups.insert(groups.end(), Group{}) : *at).push_back(&r.result);
  }
  return groups;
}

std::string percent(double share) { return fmt::format("{:.1f} %", 100 * share); }

// The strategy if that says which run of the group it is.
std::string short_name(const results::RunResult& run, const Group& group) {
  const auto alike = std::ranges::count(group, run.strategy, &results::RunResult::strategy);
  return alike == 1 ? html(run.strategy) : label(run);
}

std::string model_of(const results::RunResult& run) {
  return html(run.model.empty() ? run.name : run.model);
}

// "Its GPUs compute 74.3 % of a step. The rest is waiting for a neighbour stage (10.2 %), ..."
std::string rest_of_time(const results::RunResult& run) {
  std::vector<std::pair<double, BubbleKind>> causes;
  for (std::size_t k = 0; k < kBubbleKinds; ++k)
    if (run.bubble_shares[k] > 0.0005)
      causes.emplace_back(run.bubble_shares[k], static_cast<BubbleKind>(k));
  std::ranges::stable_sort(causes, std::greater{}, [](const auto& c) { return c.first; });
  std::string out =
      fmt::format(" Its GPUs compute {} of a step", percent(1 - results::bubble_share(run)));
  if (causes.empty()) return out + ".";
  constexpr std::size_t kNamed = 3;
  double named = 0;
  out += "; the rest is ";
  const std::size_t shown = std::min(kNamed, causes.size());
  for (std::size_t i = 0; i < shown; ++i) {
    out += fmt::format("{}{} ({})", i ? ", " : "", results::words(causes[i].second),
                       percent(causes[i].first));
    named += causes[i].first;
  }
  const double others = results::bubble_share(run) - named;
  return out + (others > 0.0005 ? fmt::format(" and others ({}).", percent(others)) : ".");
}

using Price = std::optional<double>;

std::string cost_text(const results::RunResult& run, Price price) {
  return fmt::format("{} GPU-days for {} samples ({} on {} GPUs{})", results::figure(run.gpu_days),
                     results::count(run.samples), results::duration(results::wall_clock_days(run)),
                     run.gpus, price ? ", cost " + results::money(results::cost(run, *price)) : "");
}

// Compared with the first run; if that wins, with the next best.
std::string how_much(const results::RunResult& best, const Group& group, const Group& by_cost) {
  const results::RunResult* other = group.front();
  if (other == &best || !other->fits) other = by_cost.size() > 1 ? by_cost[1] : nullptr;
  if (!other) return "";
  const auto speed_up = analysis::speed_up(analysis::cost_of(best), analysis::cost_of(*other));
  if (!speed_up) return "";
  return fmt::format(", <strong>{:.2f} x</strong> fewer than {} ({})", *speed_up,
                     short_name(*other, group), results::figure(other->gpu_days));
}

std::string answer(const Group& group, Price price) {
  Group fitting;
  for (const results::RunResult* run : group)
    if (run->fits) fitting.push_back(run);
  const std::string model = model_of(*group.front());
  if (fitting.empty())
    return fmt::format(
        "<p class=\"answer\"><strong>{}</strong>: {}. {}. <code>mllmsim explain</code> says what "
        "would help.</p>\n",
        model, group.size() > 1 ? "no run can be done" : "it cannot be done",
        html(group.front()->reason));
  std::ranges::stable_sort(fitting, {}, [](const auto* run) { return run->gpu_days; });
  const results::RunResult& best = *fitting.front();
  std::string out = "<p class=\"answer\">";
  if (group.size() == 1)
    out += fmt::format("<strong>{}</strong> under {} takes {} at {} MFU.", model,
                       html(best.strategy), cost_text(best, price), percent(best.mfu));
  else
    out += fmt::format("<strong>{}</strong> is the cheapest for {}: {}{}. MFU is {}.",
                       short_name(best, group), model, cost_text(best, price),
                       how_much(best, group, fitting), percent(best.mfu));
  const std::size_t misfits = group.size() - fitting.size();
  if (misfits > 0) out += fmt::format(" {} of {} runs cannot be done.", misfits, group.size());
  return out + rest_of_time(best) + "</p>\n";
}

// `first`: the run it is compared with; null if no other does the same work.
std::string summary_row(const results::RunResult& run, const results::RunResult* first, bool best,
                        Price price) {
  std::string out =
      fmt::format("<tr{}><th scope=\"row\" class=\"word\">{}{}</th>", best ? " class=\"best\"" : "",
                  label(run), best ? " - fewest GPU-days" : "");
  out += cell(std::to_string(run.gpus));
  out += cell(fmt::format("{} / {}{} / {}", run.tp, run.pp,
                          run.vpp > 1 ? fmt::format(" x {}", run.vpp) : "", run.dp));
  if (!run.fits)
    return out + fmt::format("<td class=\"word\" colspan=\"{}\">{}: {}</td></tr>\n", price ? 9 : 8,
                             run.feasible() ? "does not fit" : "cannot be planned",
                             html(run.reason));
  const std::optional<double> speed_up =
      first ? analysis::speed_up(analysis::cost_of(run), analysis::cost_of(*first)) : std::nullopt;
  out += cell(fmt::format("{:.4g}", run.iteration.value)) +
         cell(fmt::format("{:.4g}", run.gpu_days)) +
         cell(fmt::format("{:.4g}", results::wall_clock_days(run)));
  if (price) out += cell(results::money(results::cost(run, *price)));
  out += cell(speed_up ? fmt::format("{:.2f} x", *speed_up) : "-");
  out +=
      cell(percent(run.mfu)) + cell(percent(run.hfu)) + cell(percent(results::bubble_share(run)));
  return out + cell(results::gib(run.peak_memory, run.gpu_memory)) + "</tr>\n";
}

std::string summary_table(std::span<const ReportRun> runs, Price price) {
  std::string out =
      "<p class=\"soft\">Speed-up: GPU-days for the same samples, of the first run of the same "
      "model, data and samples, over the run's. A dash: no other run does the same work.</p>\n"
      "<div class=\"wide\"><table>\n"
      "<thead><tr><th scope=\"col\" class=\"word\">run (strategy)</th><th scope=\"col\">GPUs</th>"
      "<th scope=\"col\">tp / pp / dp</th><th scope=\"col\">step s</th>"
      "<th scope=\"col\">GPU-days</th><th scope=\"col\">days</th>";
  if (price) out += "<th scope=\"col\">cost</th>";
  out +=
      "<th scope=\"col\">speed-up</th><th scope=\"col\">MFU</th>"
      "<th scope=\"col\">HFU</th><th scope=\"col\">idle</th>"
      "<th scope=\"col\">peak memory GiB</th></tr></thead><tbody>\n";
  const std::vector<Group> groups = groups_of(runs);
  for (const ReportRun& r : runs) {
    const Group& group = *std::ranges::find_if(
        groups, [&](const Group& g) { return g.front()->work == r.result.work; });
    const bool alone = runs.size() > 1 && group.size() == 1;
    const bool best = group.size() > 1 && r.result.fits &&
                      std::ranges::none_of(group, [&](const results::RunResult* other) {
                        return other->fits && other->gpu_days < r.result.gpu_days;
                      });
    out += summary_row(r.result, alone ? nullptr : group.front(), best, price);
  }
  return out + "</tbody></table></div>\n";
}

// A part of a stacked bar, in the look it has in timelines.
std::string bar_part(const charts::SpanLook& look, std::string_view name, double share) {
  if (share <= 0) return "";
  const std::string colour = fmt::format("#{:06x}", look.colour);
  const auto stripes = [&](const char* angle) {
    return fmt::format("repeating-linear-gradient({0},{1} 0 2px,transparent 2px 6px)", angle,
                       colour);
  };
  std::string background = colour;
  if (look.fill == plot::Fill::rising) background = stripes("-45deg");
  if (look.fill == plot::Fill::falling) background = stripes("45deg");
  if (look.fill == plot::Fill::crossed) background = stripes("45deg") + "," + stripes("-45deg");
  const std::string text = fmt::format("{} {}", name, percent(share));
  const bool room = share > 0.009 * static_cast<double>(text.size());
  return fmt::format("<span{} style=\"width:{:.3f}%;background:{}\" title=\"{}\">{}</span>",
                     look.dark ? " class=\"dark\"" : "", 100 * share, background, html(text),
                     room ? fmt::format("<b>{}</b>", html(text)) : "");
}

std::string time_bars(std::span<const ReportRun> runs) {
  std::string out =
      "<h3>Where the time goes</h3>\n<p>Of a step, mean over GPUs. Every idle nanosecond has one "
      "cause.</p>\n<div class=\"bars\">\n";
  for (const ReportRun& r : runs) {
    const results::RunResult& run = r.result;
    if (!run.feasible() || !run.fits) continue;
    const double busy = 1 - results::bubble_share(run);
    std::string bar =
        bar_part({"busy", 0x0072b2, plot::Fill::solid, false, true, 0}, "computing", busy);
    std::string text = "computing " + percent(busy);
    for (std::size_t k = 0; k < kBubbleKinds; ++k) {
      const auto kind = static_cast<BubbleKind>(k);
      bar += bar_part(charts::span_looks()[charts::look_of(kind)], results::words(kind),
                      run.bubble_shares[k]);
      if (run.bubble_shares[k] > 0.0005)
        text += fmt::format(", {} {}", results::words(kind), percent(run.bubble_shares[k]));
    }
    out += fmt::format(
        "<div>{}</div><div><div class=\"bar\" aria-hidden=\"true\">{}</div>"
        "<div class=\"soft\">{}</div></div>\n",
        label(run), bar, text);
  }
  return out + "</div>\n";
}

}  // namespace

std::string answer_section(std::span<const ReportRun> runs, std::optional<double> price) {
  std::string out = "<section id=\"answer\"><h2>Answer</h2>\n";
  for (const Group& group : groups_of(runs)) out += answer(group, price);
  return out + summary_table(runs, price) + time_bars(runs) + "</section>\n";
}

}  // namespace mllmsim::report
