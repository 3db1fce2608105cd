#include "results/trace/measured_trace.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <optional>

#include "results/charts/lanes.hpp"
#include "sim/base/errors.hpp"
#include "sim/base/files.hpp"
#include "sim/base/json_reader.hpp"
#include "sim/base/loose_json.hpp"

namespace mllmsim::results {
namespace {

namespace json = boost::json;

constexpr double kLastUs = 1e16;     // of clocks that count from 1970
constexpr double kLongestUs = 1e12;  // of a step: eleven days

struct Action {
  SpanKind kind = SpanKind::forward;
  int stage = -1;  // of the model; -1: the optimizer
  int micro_batch = -1;
};

// "PP:2F1"; also "optimizer" and PyTorch's own name of its step.
std::optional<Action> action_of(std::string_view name) {
  if (name == "optimizer" || name.starts_with("Optimizer.step")) return Action{SpanKind::optimizer};
  if (!name.starts_with("PP:")) return std::nullopt;
  Action out;
  const char *at = name.data() + 3, *end = name.data() + name.size();
  const auto stage = std::from_chars(at, end, out.stage);
  if (stage.ec != std::errc{} || stage.ptr == end) return std::nullopt;
  const char type = *stage.ptr;
  if (type != 'F' && type != 'B' && type != 'I' && type != 'W') return std::nullopt;
  const auto batch = std::from_chars(stage.ptr + 1, end, out.micro_batch);
  if (batch.ec != std::errc{} || batch.ptr != end) return std::nullopt;
  out.kind = type == 'F' ? SpanKind::forward : SpanKind::backward;
  return out;
}

struct Event {
  std::string name;
  Action action;
  std::int64_t rank = 0;
  double start_us = 0, end_us = 0;
};

void add_events(const std::string& file, const std::string& text, std::int64_t index, int ranks,
                std::vector<Event>& out) {
  const json::value document = parse_json(text, file);
  const json::value* events =
      document.is_array() ? &document : loose::find(document, "traceEvents");
  if (!events || !events->is_array())
    throw UserError(file, "traceEvents", "expected a list of events");
  std::optional<std::int64_t> rank;
  if (const json::value* info = loose::find(document, "distributedInfo"))
    rank = loose::integer(*info, "rank");
  std::vector<Event> found;
  bool processes_are_ranks = true;
  for (const json::value& event : events->get_array()) {
    const std::string_view name = loose::text(event, "name");
    const std::optional<Action> action = action_of(name);
    const auto start = loose::number(event, "ts"), us = loose::number(event, "dur");
    if (!action || !start || !us || !(*us >= 0 && *us < kLongestUs)) continue;
    if (!(*start > -kLastUs && *start < kLastUs)) continue;
    const std::int64_t process = loose::integer(event, "pid").value_or(-1);
    processes_are_ranks &= process >= 0 && process < ranks;
    found.push_back({std::string(name), *action, process, *start, *start + *us});
  }
  for (Event& e : found) {
    if (rank || !processes_are_ranks) e.rank = rank.value_or(index);
    if (e.rank < 0 || e.rank >= ranks)
      throw UserError(file, "distributedInfo",
                      fmt::format("of rank {}, and the run has {}", e.rank, ranks));
  }
  out.insert(out.end(), found.begin(), found.end());
}

// Of each rank's actions of one name the last, and none of an earlier step.
std::vector<Event> last_step(std::vector<Event> events) {
  std::map<std::pair<std::int64_t, std::string>, std::vector<Event>> by_name;
  for (Event& e : events) by_name[{e.rank, e.name}].push_back(std::move(e));
  std::vector<Event> out;
  for (auto& [name, list] : by_name)
    out.push_back(*std::max_element(list.begin(), list.end(), [](const Event& a, const Event& b) {
      return a.start_us < b.start_us;
    }));
  std::stable_sort(out.begin(), out.end(), [](const Event& a, const Event& b) {
    return std::tie(a.rank, a.start_us) < std::tie(b.rank, b.start_us);
  });
  return out;
}

struct Place {
  int replica = 0, stage = 0;
};

std::map<std::int64_t, Place> places_of(const RunResult& run) {
  const Parallelism placement = charts::placement_of(run);
  std::map<std::int64_t, Place> out;
  for (int replica = 0; replica < run.dp; ++replica)
    for (int stage = 0; stage < run.pp; ++stage)
      for (int cp = 0; cp < run.cp; ++cp)
        for (int tp = 0; tp < run.tp; ++tp)
          out.try_emplace(placement.rank(tp, replica, stage, cp), Place{replica, stage});
  return out;
}

Span idle(const Span& like, Time start, Time end, BubbleKind kind) {
  Span out;
  out.replica = like.replica;
  out.stage = like.stage;
  out.kind = SpanKind::bubble;
  out.bubble = kind;
  out.start = start;
  out.end = end;
  return out;
}

}  // namespace

bool is_trace(const std::filesystem::path& path) { return path.extension() == ".json"; }

RunResult parse_trace(const std::vector<std::pair<std::string, std::string>>& names_and_texts,
                      const RunResult& run) {
  std::vector<Event> events;
  std::int64_t index = 0;
  for (const auto& [name, text] : names_and_texts)
    add_events(name, text, index++, run.gpus, events);
  const std::string file = names_and_texts.front().first;
  events = last_step(std::move(events));
  if (events.empty())
    throw UserError(file, "traceEvents",
                    "no action of a pipeline (\"PP:0F1\") or optimizer in this trace");
  double first = events.front().start_us, last = events.front().end_us;
  for (const Event& e : events) {
    first = std::min(first, e.start_us);
    last = std::max(last, e.end_us);
  }
  if (!(last > first && last - first < kLongestUs))
    throw UserError(
        file, "traceEvents",
        fmt::format("a step of {:g} s, from its first action to its last", (last - first) * 1e-6));
  const auto time = [&](double us) { return to_time(Seconds{(us - first) * 1e-6}); };
  const std::map<std::int64_t, Place> places = places_of(run);
  std::map<std::pair<int, int>, std::vector<Span>> lanes;
  for (const Event& e : events) {
    const Place place = places.at(e.rank);
    if (e.action.stage >= run.pp * run.vpp ||
        (e.action.stage >= 0 && e.action.stage % run.pp != place.stage))
      throw UserError(file, e.name,
                      fmt::format("the run has {} stages, and rank {} those of pipeline rank {}",
                                  run.pp * run.vpp, e.rank, place.stage));
    Span s;
    s.replica = place.replica;
    s.stage = place.stage;
    s.kind = e.action.kind;
    s.name = e.name;
    s.micro_batch = e.action.micro_batch;
    s.chunk = e.action.stage < 0 ? -1 : e.action.stage / run.pp;
    s.start = time(e.start_us);
    s.end = time(e.end_us);
    lanes[{s.replica, s.stage}].push_back(s);  // tp ranks of a stage lie upon each other
  }
  RunResult out;
  out.name = std::filesystem::path(file).stem().string();
  out.strategy = "measured";
  out.gpus = run.gpus, out.tp = run.tp, out.pp = run.pp, out.vpp = run.vpp, out.cp = run.cp;
  out.dp = run.dp;
  out.scenario_text = run.scenario_text;
  const Time end = time(last);
  for (auto& [place, spans] : lanes) {
    std::stable_sort(spans.begin(), spans.end(),
                     [](const Span& a, const Span& b) { return a.start < b.start; });
    Time done{}, busy{};
    std::vector<Span> idles;
    for (const Span& s : spans) {
      if (s.start > done)
        idles.push_back(
            idle(s, done, s.start, done == Time{} ? BubbleKind::pp_warmup : BubbleKind::pp_other));
      busy += std::max(Time{}, s.end - std::max(done, s.start));
      done = std::max(done, s.end);
    }
    if (done < end) idles.push_back(idle(spans.front(), done, end, BubbleKind::pp_cooldown));
    StepRow row;
    row.replica = place.first;
    row.iteration = to_seconds(end);
    row.bubble_share = 1 - busy / end;
    out.steps.push_back(row);
    out.spans.insert(out.spans.end(), spans.begin(), spans.end());
    out.spans.insert(out.spans.end(), idles.begin(), idles.end());
  }
  return out;
}

RunResult read_trace(const std::vector<std::filesystem::path>& files, const RunResult& run) {
  std::vector<std::pair<std::string, std::string>> texts;
  for (const std::filesystem::path& file : files)
    texts.emplace_back(file.string(), read_file(file, kLargeFile));
  return parse_trace(texts, run);
}

}  // namespace mllmsim::results
