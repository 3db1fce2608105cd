#include "results/charts/lanes.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <string_view>

#include "scenarios/tree/toml_parse.hpp"
#include "sim/base/errors.hpp"
#include "sim/base/text.hpp"

namespace mllmsim::charts {
namespace {

constexpr std::size_t kMostLanes = 16;  // without being asked for

std::int64_t chosen_step(const results::RunResult& run, const Choice& choice) {
  std::set<std::int64_t> steps;
  for (const results::SpanRow& s : run.spans) steps.insert(s.step);
  if (steps.empty()) throw UserError(run.name, "", "the run kept no timeline (no spans)");
  if (!choice.step) return *steps.begin();
  if (steps.contains(*choice.step)) return *choice.step;
  std::string all;
  for (const std::int64_t s : steps) all += (all.empty() ? "" : ", ") + std::to_string(s);
  throw UserError("command line", "--step",
                  fmt::format("the timeline of step {} was not kept by {}; there is {}",
                              *choice.step, run.name, all));
}

std::string ranks_text(const results::RunResult& run, const std::vector<Lane>& lanes, bool alone) {
  if (alone) return fmt::format("0-{}", run.gpus - 1);
  std::string out;
  for (const Lane& l : lanes)
    out += fmt::format("{}{}-{}", out.empty() ? "" : ", ", l.first_rank, l.first_rank + run.tp - 1);
  return out;
}

void choose_ranks(const results::RunResult& run, const Parallelism& p, const Choice& choice,
                  bool alone, View& view) {
  if (choice.ranks.empty()) {
    if (view.lanes.size() <= kMostLanes) return;
    const int first = view.lanes.front().replica;
    view.left_out = std::erase_if(view.lanes, [&](const Lane& l) { return l.replica != first; });
    return;
  }
  const std::string all = ranks_text(run, view.lanes, alone);
  for (const auto& [first, last] : choice.ranks)
    if (first < 0 || last >= run.gpus)
      throw UserError("command line", "--ranks", fmt::format("{} has ranks {}", run.name, all));
  const auto wanted = [&](int replica, int stage) {
    const std::int64_t low = p.rank(0, replica, stage),
                       high = p.rank(run.tp - 1, replica, stage, run.cp - 1);
    return std::any_of(choice.ranks.begin(), choice.ranks.end(),
                       [&](const auto& r) { return r.first <= high && r.second >= low; });
  };
  std::erase_if(view.lanes, [&](const Lane& l) {
    if (!alone) return !wanted(l.replica, l.stage);
    for (int d = 0; d < run.dp; ++d)
      if (wanted(d, l.stage)) return false;
    return true;
  });
  if (view.lanes.empty())
    throw UserError("command line", "--ranks",
                    fmt::format("{} kept the timelines of ranks {}", run.name, all));
}

}  // namespace

Parallelism placement_of(const results::RunResult& run) {
  Parallelism p;
  p.tensor_model_parallel_size = run.tp;
  p.pipeline_model_parallel_size = run.pp;
  p.context_parallel_size = run.cp;
  p.data_parallel_size = run.dp;
  try {
    const scenarios::Node root = scenarios::parse_toml(run.scenario_text, run.name);
    const scenarios::Node* section = root.find("parallelism");
    const scenarios::Node* mapping = section ? section->find("use_tp_pp_dp_mapping") : nullptr;
    p.use_tp_pp_dp_mapping = mapping && mapping->is<bool>() && mapping->as<bool>();
  } catch (const UserError&) {  // of another version: Megatron's default
  }
  return p;
}

View view_of(const results::RunResult& run, const Choice& choice) {
  View view;
  view.step = chosen_step(run, choice);
  std::map<std::pair<int, int>, Lane> lanes;
  for (const results::SpanRow& s : run.spans) {
    if (s.step != view.step) continue;
    lanes[{s.replica, s.stage}].spans.push_back(&s);
    view.end = std::max(view.end, s.end);
  }
  const Parallelism placement = placement_of(run);
  std::set<int> replicas;
  for (auto& [place, lane] : lanes) {
    std::tie(lane.replica, lane.stage) = place;
    lane.first_rank = placement.rank(0, lane.replica, lane.stage);
    replicas.insert(lane.replica);
    view.lanes.push_back(std::move(lane));
  }
  choose_ranks(run, placement, choice, replicas.size() == 1, view);
  const bool several = view.lanes.front().replica != view.lanes.back().replica;
  for (Lane& l : view.lanes) {
    l.label = several ? fmt::format("replica {}, stage {}", l.replica, l.stage)
                      : fmt::format("stage {}", l.stage);
    std::stable_sort(l.spans.begin(), l.spans.end(),
                     [](const results::SpanRow* a, const results::SpanRow* b) {
                       return std::tie(a->start, a->end) < std::tie(b->start, b->end);
                     });
  }
  if (!choice.zoom) return view;
  const Time from = to_time(choice.zoom->first), to = to_time(choice.zoom->second);
  if (from >= view.end)
    throw UserError("command line", "--zoom",
                    fmt::format("step {} of {} ends at {:.6g} s", view.step, run.name,
                                to_seconds(view.end).value));
  view.start = from;
  view.end = std::min(to, view.end);
  return view;
}

std::vector<std::pair<std::int64_t, std::int64_t>> parse_ranks(const std::string& text) {
  std::vector<std::pair<std::int64_t, std::int64_t>> out;
  for (const std::string_view part : split(text, ',')) {
    const auto dash = part.find('-');
    const auto first = to_number<std::int64_t>(part.substr(0, dash));
    const auto last =
        dash == std::string_view::npos ? first : to_number<std::int64_t>(part.substr(dash + 1));
    if (!first || !last || *last < *first)
      throw UserError("command line", "--ranks",
                      "expected ranks such as 0,3 or 0-7, found " + text);
    out.emplace_back(*first, *last);
  }
  return out;
}

std::pair<Seconds, Seconds> parse_zoom(const std::string& text) {
  const auto colon = text.find(':');
  const std::string_view all = text;
  const auto from = to_number<double>(all.substr(0, colon));
  const auto to = colon == std::string::npos ? from : to_number<double>(all.substr(colon + 1));
  if (!from || !to || !(*from >= 0 && *to > *from && *to < 1e9))
    throw UserError("command line", "--zoom",
                    "expected two times in seconds such as 0.5:1.2, found " + text);
  return {Seconds{*from}, Seconds{*to}};
}

}  // namespace mllmsim::charts
