// Runs as tables, and as a directory of Parquet files: runs, plan, stages, steps, spans, memory.
//
// Every row starts with run, strategy and scenario_hash, so files of several runs can be
// concatenated. Each file's metadata has the scenario as resolved, its hash, the calibration's
// hash, the seed and our version: what is needed to run it again. README.md lists the columns.
#pragma once

#include <filesystem>
#include <span>

#include "results/run/run_result.hpp"
#include "sim/tables/parquet.hpp"

namespace mllmsim::results {

tables::Table runs_table(std::span<const RunResult> runs);
tables::Table plan_table(std::span<const RunResult> runs);
tables::Table stages_table(std::span<const RunResult> runs);
tables::Table steps_table(std::span<const RunResult> runs);
tables::Table spans_table(std::span<const RunResult> runs);
tables::Table memory_table(std::span<const RunResult> runs);
tables::Table gaps_table(std::span<const RunResult> runs);

// A column `cost` at the end, in the currency of the price; null where GPU-days are.
void add_cost(tables::Table& runs, double price_per_gpu_hour);

tables::Metadata run_metadata(const RunResult& run);

// Writes dir/{runs,plan,stages,steps,spans,memory}.parquet, making the directory if needed.
void write_run(const RunResult& run, const std::filesystem::path& dir);

// What write_run wrote. Throws UserError if no run is there, its tables are of two runs, or a text
// is none of those that its column can have; EnvironmentError if a file of a run is missing or is
// not one of ours.
RunResult read_run(const std::filesystem::path& dir);

// A runs.parquet of one run or of many: its rows, and the table for columns that a sweep adds.
struct RunRows {
  std::vector<RunResult> runs;  // without stages, steps, spans and memory
  tables::Table table;
  tables::Metadata metadata;
};
// The runs.parquet of a run or a sweep: in this directory, or the file itself. Throws UserError if
// there is none.
std::filesystem::path runs_file(const std::filesystem::path& path);
std::string label_of(const std::filesystem::path& runs_file);  // the name of its directory

RunRows read_runs(const std::filesystem::path& runs_parquet);

}  // namespace mllmsim::results
