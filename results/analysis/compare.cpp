#include "results/analysis/compare.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "results/analysis/speed_up.hpp"
#include "results/sweep/sweep_summary.hpp"
#include "scenarios/tree/merge.hpp"
#include "sim/base/errors.hpp"
#include "sim/base/text.hpp"

namespace mllmsim::analysis {
namespace {

constexpr const char* kStrategy = "strategy";

// Whether a user's word means this key: all of it, its end, or what headings call it.
bool means(const std::string& word, const std::string& key) {
  return word == key || word == sweep::short_key(key) || scenarios::in_full(word) == key ||
         key.ends_with("." + word);
}

bool is_strategy(const std::string& key) { return key == kStrategy || key == "strategy.name"; }

// The value of `by` in a run; null if it has none.
std::optional<std::string> value_of(const ComparedRun& run, const std::string& by) {
  if (is_strategy(by)) return run.run.strategy;
  for (const VariedKey& varied : run.varied)
    if (means(by, varied.key)) return varied.text;
  return std::nullopt;
}

// Runs with equal identities differ in nothing but `by`.
std::string identity(const ComparedRun& c, const std::string& by) {
  if (by.empty()) return "";
  const results::RunResult& r = c.run;
  std::string out = r.name;
  if (!is_strategy(by)) out += "\n" + r.strategy;
  for (const auto& [key, text, value] : c.varied)
    if (!is_strategy(key) && !means(by, key)) out += "\n" + key + "=" + text;
  if (!c.of_sweep && is_strategy(by))  // nothing says what was varied: the sizes do
    out += fmt::format("\n{} {} {} {} {} {} {} {} {}", r.gpus, r.tp, r.pp, r.vpp, r.cp, r.dp,
                       r.zero_stage, r.micro_batch_size, r.global_batch_size);
  return out;
}

using Group = std::vector<ComparedRun*>;

std::vector<Group> groups_of(std::vector<ComparedRun>& runs, const std::string& by) {
  std::vector<Group> groups;
  std::map<std::string, std::size_t> index;
  for (ComparedRun& run : runs) {
    const auto [it, added] = index.emplace(identity(run, by), groups.size());
    if (added) groups.emplace_back();
    groups[it->second].push_back(&run);
  }
  return groups;
}

bool matches(const ComparedRun& run, const std::string& baseline, const std::string& by) {
  return run.label == baseline || run.run.name == baseline || run.run.strategy == baseline ||
         (!by.empty() && value_of(run, by) == baseline);
}

// The runs of a group that train the same model on the same samples as `like`.
Group same_work(const Group& group, const ComparedRun& like) {
  Group out;
  for (ComparedRun* run : group)
    if (run->run.work == like.run.work) out.push_back(run);
  return out;
}

const ComparedRun* baseline_of(const Group& group, const std::string& baseline,
                               const std::string& by) {
  const std::string& wanted = baseline.empty() ? "baseline" : baseline;
  for (const ComparedRun* run : group)
    if (matches(*run, wanted, by)) return run;
  return baseline.empty() ? group.front() : nullptr;
}

[[noreturn]] void no_baseline(const std::vector<Group>& groups, const std::string& baseline,
                              const std::string& by) {
  std::vector<std::string> known;
  const auto add = [&](const std::string& name) {
    if (std::find(known.begin(), known.end(), name) == known.end()) known.push_back(name);
  };
  for (const Group& group : groups)
    for (const ComparedRun* run : group) {
      add(run->label);
      add(run->run.strategy);
      if (const auto value = by.empty() ? std::nullopt : value_of(*run, by)) add(*value);
    }
  constexpr std::size_t kMostNames = 12;
  const std::string near = did_you_mean(baseline, known);
  known.resize(std::min(known.size(), kMostNames));
  throw UserError(
      "command line", "--baseline",
      fmt::format("no run is named \"{}\"; there are {}{}", baseline, one_of(known), near));
}

}  // namespace

std::vector<ComparedRun> compared(std::vector<ComparedRun> runs, const std::string& baseline,
                                  const std::string& by) {
  if (runs.empty()) throw UserError("command line", "", "nothing to compare");
  if (!by.empty() && std::none_of(runs.begin(), runs.end(), [&](const ComparedRun& r) {
        return value_of(r, by).has_value();
      }))
    throw UserError(
        "command line", "--by",
        fmt::format("expected strategy, or a key that varies in a sweep; found \"{}\"", by));
  const std::vector<Group> groups = groups_of(runs, by);
  bool any = false;
  std::vector<ComparedRun> out;
  for (const Group& group : groups) {
    for (ComparedRun* run : group) {
      const Group alike = same_work(group, *run);
      const ComparedRun* base = baseline_of(alike, baseline, by);
      any |= base != nullptr;
      const bool alone = alike.size() == 1 && group.size() > 1;
      run->other_work = run->run.fits && alike.size() < group.size() && (!base || alone);
      if (base && !run->other_work) run->speed_up = speed_up(cost_of(run->run), cost_of(base->run));
      out.push_back(*run);
    }
  }
  if (!any) no_baseline(groups, baseline, by);
  return out;
}

std::string comparison_note(const std::vector<ComparedRun>& runs) {
  const bool any =
      std::any_of(runs.begin(), runs.end(), [](const ComparedRun& run) { return run.other_work; });
  return any ? "speed-up -: the baseline trains another model, on other data, or on another number "
               "of samples\n"
             : "";
}

results::TextTable summary_by(const std::vector<ComparedRun>& runs, const std::string& by) {
  struct Row {
    std::string value;
    std::size_t fit = 0, misfits = 0, unplanned = 0, best = 0, rated = 0;
    double log_sum = 0;
  };
  std::vector<Row> rows;
  const auto row_of = [&](const ComparedRun& run) -> Row& {
    const std::string value = value_of(run, by).value_or("-");
    for (Row& row : rows)
      if (row.value == value) return row;
    rows.push_back({value});
    return rows.back();
  };
  std::vector<ComparedRun> copy = runs;
  for (const Group& group : groups_of(copy, by)) {
    const ComparedRun* best = nullptr;
    for (const ComparedRun* run : group) {
      Row& row = row_of(*run);
      ++(run->run.fits ? row.fit : run->run.feasible() ? row.misfits : row.unplanned);
      if (run->speed_up) {
        ++row.rated;
        row.log_sum += std::log(*run->speed_up);
      }
      if (run->speed_up && (!best || *run->speed_up > *best->speed_up)) best = run;
    }
    if (best) ++row_of(*best).best;
  }
  results::TextTable table({{sweep::short_key(by), results::Align::left},
                            {"fits"},
                            {"does not fit"},
                            {"cannot be planned"},
                            {"mean speed-up"},
                            {"best in"}});
  for (const Row& row : rows)
    table.add_row(
        {row.value, std::to_string(row.fit), std::to_string(row.misfits),
         std::to_string(row.unplanned),
         row.rated ? fmt::format("{:.2f}x", std::exp(row.log_sum / double(row.rated))) : "-",
         std::to_string(row.best)});
  return table;
}

}  // namespace mllmsim::analysis
