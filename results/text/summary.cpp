#include "results/text/summary.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <cstdlib>

#include "results/run/run_fields.hpp"
#include "results/text/figures.hpp"
#include "results/text/text_table.hpp"
#include "results/text/words.hpp"

namespace mllmsim::results {
namespace {

constexpr std::size_t kWidth = 100;
constexpr std::size_t kBarCells = 30;

std::string bar(double share, const SummaryStyle& style) {
  const std::string_view full = style.utf8 ? "█" : "#", rest = style.utf8 ? "░" : ".";
  const double cells = std::clamp(share, 0.0, 1.0) * static_cast<double>(kBarCells);
  const auto filled = static_cast<std::size_t>(std::lround(cells));
  std::string out;
  for (std::size_t i = 0; i < kBarCells; ++i) out += i < filled ? full : rest;
  return out;
}

std::string parallelism(const RunResult& run) {
  std::string vpp = run.vpp > 1 ? fmt::format("  vpp {}", run.vpp) : "";
  if (run.cp > 1) vpp += fmt::format("  cp {}", run.cp);
  return fmt::format(
      "tp {}  pp {}{}  dp {}  zero {}  global batch {}: {} micro-batches of {} per pipeline",
      run.tp, run.pp, vpp, run.dp, run.zero_stage, run.global_batch_size, run.micro_batches,
      run.micro_batch_size);
}

std::string headline(const RunResult& run) {
  std::string out = shortened(fmt::format("{} ({})", run.name, run.strategy), kWidth) + "\n";
  out += wrapped(run.without_model() ? fmt::format("given chunk times, on {} GPUs", run.gpus)
                                     : fmt::format("{}, {} parameters, on {} GPUs of {}", run.model,
                                                   count(static_cast<double>(run.parameters)),
                                                   run.gpus, run.cluster),
                 2, kWidth);
  out += "  " + parallelism(run) + "\n";
  if (!run.fits) out += wrapped("DOES NOT FIT: " + run.reason, 2, kWidth);
  return out;
}

// The quickest first, those with smaller samples last.
std::string would_fit(const RunResult& run) {
  TextTable table(
      {{"would fit with", Align::left, true}, {"iteration s"}, {"GPU-days"}, {"memory GiB"}});
  for (const FitRow& r : run.would_fit)
    table.add_row({r.change, figure(r.iteration.value), figure(r.gpu_days),
                   gib(r.peak_memory, run.gpu_memory)});
  return table.text(2, kWidth);
}

// "kernel times: 81% interpolated, 19% estimated"
std::string trust(const RunResult& run) {
  constexpr std::array<const char*, costs::kSources> kWords = {
      "measured", "interpolated between measurements", "transferred from another machine",
      "estimated"};
  std::string out;
  for (std::size_t i = 0; i < costs::kSources; ++i)
    if (run.source_shares[i] > 0)
      out += fmt::format("{}{:.0f}% {}", out.empty() ? "" : ", ", 100 * run.source_shares[i],
                         kWords[i]);
  return out.empty() ? out : "kernel times: " + out;
}

std::string simulated_steps(const RunResult& run) {
  return fmt::format("{} {}, {} granularity", run.simulated_steps,
                     run.simulated_steps == 1 ? "step" : "steps", name_of(run.granularity));
}

// It takes no time that could be told, since it stops in the first step that runs out of memory.
std::string figures_without_times(const RunResult& run) {
  TextTable table({{"", Align::left}, {"", Align::left}, {"", Align::left}, {"", Align::left}});
  table.add_row({"peak memory", gib(run.peak_memory, run.gpu_memory) + " GiB", "simulated",
                 simulated_steps(run)});
  return table.text(2, kWidth) + "  no times: it cannot be run as it is\n";
}

std::string figures(const RunResult& run, std::optional<double> price) {
  if (!run.fits) return figures_without_times(run);
  TextTable table({{"", Align::left}, {"", Align::left}, {"", Align::left}, {"", Align::left}});
  table.add_row({"iteration", figure(run.iteration.value) + " s", "GPU-days",
                 fmt::format("{} for {} samples", figure(run.gpu_days), count(run.samples))});
  table.add_row({"samples", figure(run.samples_per_step) + " per step", "wall clock",
                 fmt::format("{} on {} GPUs", duration(wall_clock_days(run)), run.gpus)});
  if (price)
    table.add_row(
        {"cost", money(cost(run, *price)), "price", fmt::format("{} per GPU-hour", *price)});
  const std::string throughput = figure(run.samples_per_s) + " samples/s";
  const std::string simulated = simulated_steps(run);
  if (run.without_model()) {
    table.add_row({"throughput", throughput, "simulated", simulated});
    return table.text(2, kWidth);
  }
  table.add_row(
      {"throughput", throughput, "per GPU", figure(run.tokens_per_s_per_gpu) + " tokens/s"});
  table.add_row({"MFU", percent(run.mfu), "HFU", percent(run.hfu)});
  table.add_row(
      {"peak memory", gib(run.peak_memory, run.gpu_memory) + " GiB", "simulated", simulated});
  const std::string rests_on = trust(run);
  return table.text(2, kWidth) + (rests_on.empty() ? "" : "\n" + wrapped(rests_on, 2, kWidth));
}

std::string time_shares(const RunResult& run, const SummaryStyle& style) {
  TextTable table({{"step time", Align::left}, {"share"}, {"", Align::left}});
  const double busy = 1 - bubble_share(run);
  table.add_row({"busy", percent(busy), bar(busy, style)});
  for (std::size_t k = 0; k < kBubbleKinds; ++k)
    if (run.bubble_shares[k] > 0)
      table.add_row({std::string(words(static_cast<BubbleKind>(k))), percent(run.bubble_shares[k]),
                     bar(run.bubble_shares[k], style)});
  return table.text(2, kWidth);
}

std::string facts(const RunResult& run) {
  TextTable table({{"plan", Align::left}, {"", Align::left, true}});
  for (const Fact& fact : run.facts) table.add_row({spaced(fact.key), fact.text});
  return table.text(2, kWidth);
}

std::string stages(const RunResult& run) {
  TextTable table({{"stage"},
                   {"layers", Align::left, true},
                   {"fwd ms"},
                   {"bwd ms"},
                   {"busy"},
                   {"bubbles"},
                   {"memory GiB"}});
  for (const StageRow& s : run.stages) {
    std::vector<std::string> cells = {std::to_string(s.stage), s.layers};
    if (run.fits) {
      const Seconds step = s.busy + bubble_time(s);
      const double busy = step.value > 0 ? s.busy / step : 0;
      cells.insert(cells.end(), {figure(s.forward.value * 1e3), figure(s.backward.value * 1e3),
                                 percent(busy), percent(step.value > 0 ? 1 - busy : 0)});
    } else {
      cells.insert(cells.end(), 4, "-");
    }
    cells.push_back(gib(s.peak_memory, run.gpu_memory));
    table.add_row(std::move(cells));
  }
  return table.text(2, kWidth);
}

}  // namespace

bool utf8_locale() {
  for (const char* name : {"LC_ALL", "LC_CTYPE", "LANG"})
    if (const char* value = std::getenv(name); value != nullptr && *value != '\0') {
      std::string locale(value);
      std::transform(locale.begin(), locale.end(), locale.begin(),
                     [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
      return locale.find("utf-8") != std::string::npos || locale.find("utf8") != std::string::npos;
    }
  return false;
}

std::string summary(const RunResult& run, const SummaryStyle& style) {
  std::string out = headline(run);
  if (!run.would_fit.empty()) out += "\n" + would_fit(run);
  if (run.feasible()) out += "\n" + figures(run, style.price_per_gpu_hour);
  if (run.feasible() && run.fits) out += "\n" + time_shares(run, style);
  if (!run.facts.empty()) out += "\n" + facts(run);
  if (!run.stages.empty()) out += "\n" + stages(run);
  return out;
}

void add_time_cells(const RunResult& run, std::optional<double> price,
                    std::vector<std::string>& cells) {
  for (const double value : {run.iteration.value, run.gpu_days, wall_clock_days(run)})
    cells.push_back(figure(value));
  if (price) cells.push_back(money(cost(run, *price)));
}

std::string memory_cell(const RunResult& run) {
  if (run.fits) return gib(run.peak_memory, run.gpu_memory);
  return run.feasible() ? "does not fit" : "cannot be planned";
}

std::string comparison(std::span<const RunResult> runs, std::optional<double> price) {
  std::vector<TextColumn> columns{{"run", Align::left, true}, {"strategy", Align::left, true}};
  for (const char* heading : {"GPUs", "iteration s", "GPU-days", "days"})
    columns.push_back({heading});
  if (price) columns.push_back({"cost"});
  for (const char* heading : {"MFU", "bubbles", "memory GiB"}) columns.push_back({heading});
  TextTable table(std::move(columns));
  for (const RunResult& run : runs) {
    std::vector<std::string> cells = {run.name, run.strategy, std::to_string(run.gpus)};
    if (run.fits) {
      add_time_cells(run, price, cells);
      cells.insert(cells.end(), {percent(run.mfu), percent(bubble_share(run))});
    } else {
      cells.insert(cells.end(), price ? 6 : 5, "-");
    }
    cells.push_back(memory_cell(run));
    table.add_row(std::move(cells));
  }
  return table.text(0, kWidth);
}

std::string measure_first(std::span<const GapRow> gaps, const std::string& command) {
  double share = 0;
  for (const GapRow& gap : gaps) share += gap.share;
  TextTable table(
      {{fmt::format("measure first: {} of kernel time", percent(share)), Align::left, true},
       {"share"}});
  for (const GapRow& gap : gaps) table.add_row({gap.kernel, percent(gap.share)});
  return table.text(2, kWidth) + wrapped(command, 4, kWidth);
}

std::string summaries(std::span<const RunResult> runs, const SummaryStyle& style) {
  std::string out;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    out += summary(runs[i], style) + "\n";
    if (i < style.measure_commands.size() && !runs[i].gaps.empty())
      out += measure_first(runs[i].gaps, style.measure_commands[i]) + "\n";
  }
  return runs.size() > 1 ? out + comparison(runs, style.price_per_gpu_hour)
                         : out.substr(0, out.empty() ? 0 : out.size() - 1);
}

}  // namespace mllmsim::results
