// A sweep as two tables, runs and stages, a directory of them, and several shards as one.
//
// Behind the keys of every row stands `point`, its number in the sweep; runs also have a column for
// every key that varies, named as in the scenario. It holds integers, numbers or truth values if
// all its values are such, otherwise text. Metadata:
//
//   scenario   the run file with its [sweep]
//   inputs     a line "hash name" for every file that was read
//   keys       that vary
//   points     how many there are
#pragma once

#include <filesystem>
#include <vector>

#include "results/sweep/run_sweep.hpp"
#include "sim/tables/parquet.hpp"

namespace mllmsim::sweep {

struct SweepTables {
  tables::Table runs, stages;
  tables::Metadata metadata;
};

SweepTables tables_of(const scenarios::Sweep& sweep, const SweepResult& result);

// Writes directory/{stages,runs}.parquet, runs last: the sweep is complete.
void write_sweep(const SweepTables& tables, const std::filesystem::path& directory);

// The rows of all shards in the order of their points. A point that several have counts once.
// Throws UserError if they are not of one sweep, an input differs between them, or points are
// missing.
SweepTables merge_sweeps(const std::vector<std::filesystem::path>& directories);

}  // namespace mllmsim::sweep
