// Runs beside each other: what each costs, and how much faster it is than a baseline.
// What a speed-up is, results/analysis/speed_up.hpp says.
//
// Runs are compared within groups: all together, or, `by` a key, those that differ in nothing but
// that key. In a group only runs of the same work (model, data, samples) are compared, each with
// the baseline among them. A run that does not fit has no speed-up.
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
  bool other_work = false;  // no speed-up because nothing it could be compared with does its work
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

// For people, rounded; for programs. With a price for a GPU-hour also what each costs.
results::TextTable comparison_text(const std::vector<ComparedRun>& runs,
                                   std::optional<double> price = std::nullopt);
tables::Table comparison_table(const std::vector<ComparedRun>& runs,
                               std::optional<double> price = std::nullopt);

// Why some runs have no speed-up, as a line for people; "" if all that fit have one.
std::string comparison_note(const std::vector<ComparedRun>& runs);

// For each value of `by`: in how many groups it fits, its mean speed-up (geometric), and in how
// many it costs least.
results::TextTable summary_by(const std::vector<ComparedRun>& runs, const std::string& by);

}  // namespace mllmsim::analysis
