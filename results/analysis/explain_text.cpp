#include <fmt/format.h>

#include <algorithm>
#include <boost/json.hpp>
#include <map>

#include "results/analysis/explain.hpp"
#include "results/run/run_fields.hpp"
#include "results/text/figures.hpp"
#include "results/text/text_table.hpp"
#include "results/text/words.hpp"
#include "sim/base/json_writer.hpp"

namespace mllmsim::analysis {
namespace {

namespace json = boost::json;

constexpr std::size_t kWidth = 100;

template <class Key>
struct Share {
  Key key;
  double seconds = 0;
};

std::vector<Share<PathKind>> path_by_kind(const results::RunResult& run) {
  std::map<PathKind, double> sums;
  for (const results::PathRow& row : run.critical_path) sums[row.kind] += row.time.value;
  std::vector<Share<PathKind>> out;
  for (const auto& [kind, seconds] : sums) out.push_back({kind, seconds});
  std::stable_sort(out.begin(), out.end(),
                   [](const auto& a, const auto& b) { return a.seconds > b.seconds; });
  return out;
}

std::vector<Share<int>> path_by_stage(const results::RunResult& run) {
  std::vector<Share<int>> out;
  for (const PathPart& part : run.critical_path) {
    if (out.empty() || out.back().key != part.stage) out.push_back({part.stage});
    out.back().seconds += part.time.value;
  }
  return out;
}

double path_length(const results::RunResult& run) {
  double sum = 0;
  for (const PathPart& part : run.critical_path) sum += part.time.value;
  return sum;
}

std::string path_text(const results::RunResult& run) {
  const double all = path_length(run);
  results::TextTable kinds({{"critical path", results::Align::left}, {"s"}, {"share"}});
  for (const auto& [kind, seconds] : path_by_kind(run))
    kinds.add_row({std::string(results::words(kind)), results::figure(seconds),
                   results::percent(seconds / all)});
  results::TextTable stages({{"by stage", results::Align::left},
                             {"s"},
                             {"share"},
                             {"busy"},
                             {"layers", results::Align::left, true}});
  for (const auto& [stage, seconds] : path_by_stage(run)) {
    const results::StageRow& row = run.stages[static_cast<std::size_t>(stage)];
    const Seconds step = row.busy + results::bubble_time(row);
    stages.add_row({fmt::format("stage {}", stage), results::figure(seconds),
                    results::percent(seconds / all), results::percent(row.busy / step),
                    row.layers});
  }
  return kinds.text(2, kWidth) + "\n" + stages.text(2, kWidth);
}

std::string imbalance_text(const Explanation& e) {
  const results::StageRow& slow = e.run.stages[static_cast<std::size_t>(e.slowest_stage)];
  results::TextTable table({{"", results::Align::left}, {"", results::Align::left}});
  table.add_row(
      {"slowest stage", fmt::format("{}: {} ms forward, {} ms backward per micro-batch",
                                    e.slowest_stage, results::figure(slow.forward.value * 1e3),
                                    results::figure(slow.backward.value * 1e3))});
  const auto add = [&](const char* what, double value) {
    table.add_row({what, fmt::format("{:.2f} (slowest / mean)", value)});
  };
  add("imbalance across stages", e.across_stages);
  add("imbalance across replicas", e.across_replicas);
  add("imbalance across micro-batches", e.across_micro_batches);
  return table.text(2, kWidth);
}

std::string remedies_text(const Explanation& e, std::optional<double> price) {
  results::TextTable table({{"what would help", results::Align::left},
                            {"gain"},
                            {"iteration s"},
                            {"GPU-days"},
                            {price ? "cost" : "days"},
                            {"memory GiB"},
                            {"", results::Align::left}});
  std::string changes, others;
  std::size_t fit = 0;
  for (const Remedy& r : e.remedies) {
    if (!r.run) {
      others += results::wrapped(r.name + ": " + r.note, 2, kWidth);
      continue;
    }
    std::vector<std::string> cells{r.name};
    if (r.run->fits)
      cells.insert(cells.end(),
                   {e.run.fits ? fmt::format("{:+.1f}%", 100 * r.gain) : "-",
                    results::figure(r.run->iteration.value), results::figure(r.run->gpu_days),
                    price ? results::money(results::cost(*r.run, *price))
                          : results::figure(results::wall_clock_days(*r.run))});
    else
      cells.insert(cells.end(), 4, "-");
    cells.insert(cells.end(), {results::gib(r.run->peak_memory, r.run->gpu_memory),
                               r.run->fits ? "" : "does not fit"});
    table.add_row(std::move(cells));
    changes += results::wrapped(r.name + ": " + r.change, 2, kWidth);
    fit += r.run->fits;
  }
  const char* none = "\n  none of these fits: more GPUs or more memory are needed\n";
  return table.text(2, kWidth) + (!e.run.fits && fit == 0 ? none : "") + "\n" + changes +
         (others.empty() ? "" : "\n  does not apply\n" + others);
}

std::string headline(const results::RunResult& run, std::optional<double> price) {
  if (!run.fits)
    return fmt::format("  {} GiB\n", results::gib(run.peak_memory, run.gpu_memory)) +
           results::wrapped("DOES NOT FIT: " + run.reason, 2, kWidth);
  std::string out = fmt::format(
      "  {} s per step, {} GPU-days ({} on {} GPUs), MFU {}, bubbles {}, {} GiB\n",
      results::figure(run.iteration.value), results::figure(run.gpu_days),
      results::duration(results::wall_clock_days(run)), run.gpus, results::percent(run.mfu),
      results::percent(results::bubble_share(run)), results::gib(run.peak_memory, run.gpu_memory));
  if (price) out += fmt::format("  cost {}\n", results::money(results::cost(run, *price)));
  return out;
}

// What a run that does not fit has no figure of.
json::value timed(const results::RunResult& run, double value) {
  return run.fits ? json::value(value) : json::value();
}

}  // namespace

std::string explanation_text(const Explanation& e, std::optional<double> price) {
  const results::RunResult& run = e.run;
  std::string out = fmt::format("{} ({})\n", run.name, run.strategy) + headline(run, price);
  if (run.pass_steps > run.simulated_steps)
    out += fmt::format("  {} of the pass's {} steps were simulated, here and below\n",
                       run.simulated_steps, run.pass_steps);
  if (run.fits) out += "\n" + path_text(run) + "\n" + imbalance_text(e);
  return out + "\n" + remedies_text(e, price) +
         (run.fits ? "\n  gain: in samples per second; each" : "\n  each") +
         " remedy is simulated by itself, on the same data\n";
}

std::string explanation_json(const Explanation& e, std::optional<double> price) {
  const results::RunResult& run = e.run;
  json::array kinds, stages, remedies;
  const double all = path_length(run);
  if (run.fits) {
    for (const auto& [kind, seconds] : path_by_kind(run))
      kinds.push_back({{"kind", name_of(kind)}, {"time_s", seconds}, {"share", seconds / all}});
    for (const auto& [stage, seconds] : path_by_stage(run))
      stages.push_back({{"stage", stage}, {"time_s", seconds}, {"share", seconds / all}});
  }
  for (const Remedy& r : e.remedies) {
    json::object object{{"remedy", r.name}, {"change", r.change}, {"note", r.note}};
    if (r.run) {
      object["gain"] = run.fits ? timed(*r.run, r.gain) : json::value();
      object["fits"] = r.run->fits;
      object["iteration_s"] = timed(*r.run, r.run->iteration.value);
      object["gpu_days"] = timed(*r.run, r.run->gpu_days);
      object["days"] = timed(*r.run, results::wall_clock_days(*r.run));
      if (price) object["cost"] = timed(*r.run, results::cost(*r.run, *price));
      object["peak_memory_bytes"] = r.run->peak_memory.value;
    }
    remedies.push_back(std::move(object));
  }
  json::object out{{"run", run.name},
                   {"strategy", run.strategy},
                   {"fits", run.fits},
                   {"reason", run.reason},
                   {"simulated_steps", run.simulated_steps},
                   {"iteration_s", timed(run, run.iteration.value)},
                   {"gpu_days", timed(run, run.gpu_days)},
                   {"days", timed(run, results::wall_clock_days(run))},
                   {"critical_path", std::move(kinds)},
                   {"critical_path_stages", std::move(stages)},
                   {"slowest_stage", e.slowest_stage},
                   {"imbalance_across_stages", e.across_stages},
                   {"imbalance_across_replicas", e.across_replicas},
                   {"imbalance_across_micro_batches", e.across_micro_batches},
                   {"remedies", std::move(remedies)}};
  if (price) out["cost"] = timed(run, results::cost(run, *price));
  return pretty_json(out);
}

}  // namespace mllmsim::analysis
