// Runs beside each other: what each costs, and how much faster it is than a baseline.
//
//   speed-up = samples per second / samples per second of the baseline
//
// so that on more GPUs it counts wall-clock time, while GPU-days count the bill. Runs are compared
// within groups: all together, or, `by` a key, those that differ in nothing but that key. A run
// that does not fit has no speed-up.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "results/run/run_result.hpp"
#include "results/text/text_table.hpp"
#include "sim/tables/parquet.hpp"

namespace mllmsim::analysis {

// A key of a sweep: its column in runs.parquet, and what this run has there.
struct VariedKey {
  std::string key, text;
  std::variant<std::int64_t, double, bool, std::string> value;
};

struct ComparedRun {
  results::RunResult run;  // its row of runs.parquet
  std::string label;       // the run's directory, or the sweep's
  bool of_sweep = false;
  std::vector<VariedKey> varied;
  std::optional<double> speed_up;
};

// Rows of run directories, sweep directories and runs.parquet files. Throws UserError if one is
// none of these.
std::vector<ComparedRun> read_compared(const std::vector<std::filesystem::path>& paths);

// Runs ordered by group, with their speed-ups. `by`: "strategy", or a key that a sweep varies (its
// last part suffices); empty: one group. `baseline`: a run's name or directory, a strategy, or a
// value of `by`; empty: the strategy "baseline" if a group has it, else its first run. Throws
// UserError if there is no such key or baseline.
std::vector<ComparedRun> compared(std::vector<ComparedRun> runs, const std::string& baseline,
                                  const std::string& by);

results::TextTable comparison_text(const std::vector<ComparedRun>& runs);  // for people, rounded
tables::Table comparison_table(const std::vector<ComparedRun>& runs);      // for programs

// For each value of `by`: in how many groups it fits, its mean speed-up (geometric), and in how
// many it is the fastest.
results::TextTable summary_by(const std::vector<ComparedRun>& runs, const std::string& by);

}  // namespace mllmsim::analysis
