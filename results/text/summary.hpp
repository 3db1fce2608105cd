// What a person reads on the terminal after a run: what was run, what it costs, where the time
// goes, one line per stage. At most 100 columns; figures are rounded, the Parquet files have them
// all.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "results/run/run_result.hpp"

namespace mllmsim::results {

struct SummaryStyle {
  bool utf8 = true;                            // bars of block characters; otherwise of '#'
  std::optional<double> price_per_gpu_hour{};  // says what a run costs
  // How to measure the kernels of run `i` that matter most; empty: nothing is said of them.
  std::vector<std::string> measure_commands{};
};

// Whether the locale's environment variables (LC_ALL, LC_CTYPE, LANG) ask for UTF-8.
bool utf8_locale();

std::string summary(const RunResult& run, const SummaryStyle& style);

// One line per run.
std::string comparison(std::span<const RunResult> runs, std::optional<double> price = {});

// Each run's summary, and the comparison if there are several.
std::string summaries(std::span<const RunResult> runs, const SummaryStyle& style);

// The kernels to measure first with their shares, and the command for it.
std::string measure_first(std::span<const GapRow> gaps, const std::string& command);

// A run's cells of a table: seconds per step, GPU-days, days and, with a price, what it costs.
void add_time_cells(const RunResult& run, std::optional<double> price,
                    std::vector<std::string>& cells);

// Memory of the fullest GPU, "61.2 of 80.0"; otherwise "does not fit", or "cannot be planned".
std::string memory_cell(const RunResult& run);

}  // namespace mllmsim::results
