#include "results/analysis/compare_trace.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <boost/json.hpp>
#include <cmath>
#include <map>
#include <tuple>

#include "results/text/text_table.hpp"
#include "sim/base/errors.hpp"
#include "sim/base/json_writer.hpp"
#include "sim/base/quantile.hpp"

namespace mllmsim::analysis {
namespace {

using Key = std::tuple<int, int, int, int, bool>;  // replica, stage, chunk, micro-batch, forward

struct Stretch {
  Time start{INT64_MAX}, end{}, busy{};
};

struct Timeline {
  std::map<Key, Stretch> actions;
  std::map<std::pair<int, int>, Time> busy;
  Time end{};
};

Timeline timeline_of(const results::RunResult& run) {
  Timeline out;
  if (run.spans.empty())
    throw UserError(run.name, "", "has no timeline: `mllmsim run` keeps that of one step");
  const std::int64_t step = run.spans.front().step;
  for (const results::SpanRow& s : run.spans) {
    if (s.step != step) continue;
    out.end = std::max(out.end, s.end);
    if (s.kind == SpanKind::bubble || s.stream != StreamKind::compute) continue;
    out.busy[{s.replica, s.stage}] += s.end - s.start;
    const bool forward = s.kind == SpanKind::forward;
    if (!forward && s.kind != SpanKind::backward && s.kind != SpanKind::recompute) continue;
    Stretch& stretch = out.actions[{s.replica, s.stage, s.chunk, s.micro_batch, forward}];
    stretch.start = std::min(stretch.start, s.start);
    stretch.end = std::max(stretch.end, s.end);
    stretch.busy += s.end - s.start;
  }
  return out;
}

std::vector<double> sorted_errors(const TraceComparison& c,
                                  double (*of)(const TraceComparison&, const ComparedAction&)) {
  std::vector<double> out;
  for (const ComparedAction& a : c.actions) out.push_back(std::abs(of(c, a)));
  std::sort(out.begin(), out.end());
  return out;
}

double duration_error(const TraceComparison&, const ComparedAction& a) {
  return a.predicted / a.measured - 1;
}
double start_error(const TraceComparison& c, const ComparedAction& a) {
  return (a.predicted_start - a.measured_start) / c.measured;
}

std::string percent(double share) { return fmt::format("{:.1f} %", 100 * share); }
std::string ms(Seconds s) { return fmt::format("{:.1f}", 1e3 * s.value); }

}  // namespace

TraceComparison compare_trace(const results::RunResult& run, const results::RunResult& trace) {
  const Timeline predicted = timeline_of(run), measured = timeline_of(trace);
  TraceComparison out;
  out.run = run.name;
  out.trace = trace.name;
  out.predicted = to_seconds(predicted.end);
  out.measured = to_seconds(measured.end);
  for (const auto& [place, busy] : predicted.busy) {
    const auto found = measured.busy.find(place);
    if (found == measured.busy.end()) continue;  // a trace of some ranks
    out.lanes.push_back(
        {place.first, place.second, 1 - busy / predicted.end, 1 - found->second / measured.end});
  }
  for (const auto& [key, p] : predicted.actions) {
    const auto found = measured.actions.find(key);
    if (found == measured.actions.end()) {
      ++out.only_predicted;
      continue;
    }
    const Stretch& m = found->second;
    if (m.busy <= Time{}) continue;
    const auto& [replica, stage, chunk, micro_batch, forward] = key;
    out.actions.push_back({replica, stage, chunk, micro_batch, forward, to_seconds(p.start),
                           to_seconds(p.end - p.start), to_seconds(m.start), to_seconds(m.busy)});
  }
  for (const auto& [key, m] : measured.actions)
    out.only_measured += predicted.actions.contains(key) ? 0 : 1;
  return out;
}

std::string trace_text(const TraceComparison& c) {
  std::string out =
      fmt::format("{} beside {}\n  step  predicted {:.4g} s  measured {:.4g} s  error {:+.1f} %\n",
                  c.run, c.trace, c.predicted.value, c.measured.value, 100 * c.error());
  if (!c.actions.empty()) {
    const auto durations = sorted_errors(c, duration_error), starts = sorted_errors(c, start_error);
    out += fmt::format(
        "  {} actions: |error| of durations {} (median), {} (p90); of starts {}, {} of the step\n",
        c.actions.size(), percent(quantile(durations, 0.5)), percent(quantile(durations, 0.9)),
        percent(quantile(starts, 0.5)), percent(quantile(starts, 0.9)));
  }
  if (c.only_predicted + c.only_measured > 0)
    out += fmt::format("  {} actions only predicted, {} only measured\n", c.only_predicted,
                       c.only_measured);
  results::TextTable table({{"replica"},
                            {"stage"},
                            {"forward ms"},
                            {"measured"},
                            {"backward ms"},
                            {"measured"},
                            {"idle"},
                            {"measured"}});
  for (const LaneFigures& lane : c.lanes) {
    Seconds sums[2][2]{};
    std::size_t counts[2]{};
    for (const ComparedAction& a : c.actions) {
      if (a.replica != lane.replica || a.stage != lane.stage) continue;
      sums[a.forward ? 0 : 1][0] += a.predicted;
      sums[a.forward ? 0 : 1][1] += a.measured;
      ++counts[a.forward ? 0 : 1];
    }
    const auto mean = [&](int pass, int which) {
      return counts[pass] == 0 ? "-" : ms(sums[pass][which] / static_cast<double>(counts[pass]));
    };
    table.add_row({std::to_string(lane.replica), std::to_string(lane.stage), mean(0, 0), mean(0, 1),
                   mean(1, 0), mean(1, 1), percent(lane.predicted_idle),
                   percent(lane.measured_idle)});
  }
  return out + "\n" + table.text(2, 120);
}

std::string trace_json(const TraceComparison& c) {
  namespace json = boost::json;
  json::array lanes, actions;
  for (const LaneFigures& l : c.lanes)
    lanes.push_back(json::object{{"replica", l.replica},
                                 {"stage", l.stage},
                                 {"predicted_idle_share", l.predicted_idle},
                                 {"measured_idle_share", l.measured_idle}});
  for (const ComparedAction& a : c.actions)
    actions.push_back(json::object{{"replica", a.replica},
                                   {"stage", a.stage},
                                   {"chunk", a.chunk},
                                   {"micro_batch", a.micro_batch},
                                   {"pass", a.forward ? "forward" : "backward"},
                                   {"predicted_start_s", a.predicted_start.value},
                                   {"predicted_s", a.predicted.value},
                                   {"measured_start_s", a.measured_start.value},
                                   {"measured_s", a.measured.value}});
  return pretty_json(json::object{{"run", c.run},
                                  {"trace", c.trace},
                                  {"predicted_s", c.predicted.value},
                                  {"measured_s", c.measured.value},
                                  {"error", c.error()},
                                  {"lanes", std::move(lanes)},
                                  {"actions", std::move(actions)},
                                  {"only_predicted", c.only_predicted},
                                  {"only_measured", c.only_measured}},
                     9);
}

}  // namespace mllmsim::analysis
