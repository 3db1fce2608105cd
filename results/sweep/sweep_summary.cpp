#include "results/sweep/sweep_summary.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <numeric>

#include "results/run/run_fields.hpp"
#include "results/text/figures.hpp"
#include "results/text/summary.hpp"
#include "results/text/text_table.hpp"

namespace mllmsim::sweep {
namespace {

constexpr std::size_t kWidth = 100;
constexpr std::size_t kMostRows = 40, kBestRows = 20, kReasons = 5;

std::string value_text(const scenarios::Node& node) {
  return node.is<std::string>() ? node.as<std::string>() : scenarios::to_inline_toml(node);
}

std::string points_table(const scenarios::Sweep& sweep, const SweepResult& result,
                         const std::vector<std::size_t>& rows, std::optional<double> price) {
  std::vector<results::TextColumn> columns;
  for (const std::string& key : sweep.keys()) columns.push_back({short_key(key)});
  for (const char* heading : {"GPUs", "iteration s", "GPU-days", "days"})
    columns.push_back({heading});
  if (price) columns.push_back({"cost"});
  for (const char* heading : {"MFU", "bubbles"}) columns.push_back({heading});
  columns.push_back({"memory GiB", results::Align::left, true});
  results::TextTable table(std::move(columns));
  for (const std::size_t row : rows) {
    const results::RunResult& run = result.runs[row];
    std::vector<std::string> cells;
    for (const scenarios::Node* value : sweep.values(result.points[row]))
      cells.push_back(value_text(*value));
    cells.push_back(run.gpus > 0 ? std::to_string(run.gpus) : "-");
    if (run.fits) {
      results::add_time_cells(run, price, cells);
      cells.insert(cells.end(),
                   {results::percent(run.mfu), results::percent(results::bubble_share(run)),
                    results::gib(run.peak_memory, run.gpu_memory)});
    } else {
      cells.insert(cells.end(), price ? 6 : 5, "-");
      cells.push_back(run.reason);
    }
    table.add_row(std::move(cells));
  }
  return table.text(0, kWidth);
}

// "12 points: 8 fit, 3 do not fit in memory, 1 cannot be planned"
std::string counts(const SweepResult& result) {
  std::size_t fit = 0, misfits = 0, unplanned = 0;
  for (const results::RunResult& run : result.runs)
    ++(run.fits ? fit : run.feasible() ? misfits : unplanned);
  return results::points_text(fit, misfits, unplanned) + "\n";
}

// The commonest reasons, numbers in them aside: "12 x stage _ needs _ GiB".
std::string reasons(const SweepResult& result) {
  std::map<std::string, std::pair<std::size_t, std::string>> by_kind;  // count, an example
  for (const results::RunResult& run : result.runs) {
    if (run.fits) continue;
    std::string kind = run.reason;
    kind.erase(std::remove_if(kind.begin(), kind.end(),
                              [](char c) { return (c >= '0' && c <= '9') || c == '.'; }),
               kind.end());
    auto& [count, example] = by_kind[kind];
    if (count++ == 0) example = run.reason;
  }
  std::vector<std::pair<std::size_t, std::string>> sorted;
  for (auto& [kind, entry] : by_kind) sorted.push_back(entry);
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const auto& a, const auto& b) { return a.first > b.first; });
  std::string out;
  for (std::size_t i = 0; i < std::min(sorted.size(), kReasons); ++i)
    out += results::wrapped(fmt::format("{} x {}", sorted[i].first, sorted[i].second), 2, kWidth);
  if (sorted.size() > kReasons) out += "  and others\n";
  return out;
}

}  // namespace

std::string short_key(const std::string& key) {
  constexpr std::array<std::pair<std::string_view, const char*>, 6> kShort = {
      {{"tensor_model_parallel_size", "tp"},
       {"pipeline_model_parallel_size", "pp"},
       {"virtual_pipeline_stages", "vpp"},
       {"micro_batch_size", "micro-batch"},
       {"global_batch_size", "global batch"},
       {"strategy.name", "strategy"}}};
  for (const auto& [end, name] : kShort)
    if (key == end || key == fmt::format("parallelism.{}", end)) return name;
  return key;
}

std::string sweep_summary(const scenarios::Sweep& sweep, const SweepResult& result,
                          std::optional<double> price) {
  std::vector<std::size_t> rows(result.runs.size());
  std::iota(rows.begin(), rows.end(), std::size_t{0});
  std::string out;
  if (rows.size() > kMostRows) {
    std::erase_if(rows, [&](std::size_t r) { return !result.runs[r].fits; });
    std::stable_sort(rows.begin(), rows.end(), [&](std::size_t a, std::size_t b) {
      return result.runs[a].gpu_days < result.runs[b].gpu_days;
    });
    rows.resize(std::min(rows.size(), kBestRows));
    if (!rows.empty()) out += fmt::format("the {} with the fewest GPU-days\n", rows.size());
  }
  if (!rows.empty()) out += points_table(sweep, result, rows, price) + "\n";
  return out + counts(result) + reasons(result);
}

}  // namespace mllmsim::sweep
