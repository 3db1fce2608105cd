// A sweep as two tables, runs and stages, a directory of them, and several shards as one.
//
// Behind the keys of every row stands `point`, its number in the sweep; runs also have a column for
// every key that varies, named as in the scenario. It holds integers, numbers or truth values if
// all its values are such, otherwise text. Runs have columns strategy, model, cluster and seed
// anyway: a key of that name that varies over plain names or integers fills it, also for points
// that cannot be read; over files or tables it is a column of its own, as scenario.cluster.
// Metadata:
//
//   scenario   the run file with its [sweep]
//   inputs     a line "hash name" for every file that was read
//   keys       that vary
//   points     how many there are
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "results/sweep/run_sweep.hpp"
#include "sim/tables/parquet.hpp"

namespace mllmsim::sweep {

struct SweepTables {
  tables::Table runs, stages;
  tables::Metadata metadata;
};

SweepTables tables_of(const scenarios::Sweep& sweep, const SweepResult& result);

// The name of the column of runs that holds a key that varies.
std::string varied_column(const tables::Table& runs, const std::string& key);

// Writes directory/{stages,runs}.parquet, runs last: the sweep is complete.
void write_sweep(const SweepTables& tables, const std::filesystem::path& directory);

// The directories of shards that these are or hold (shard_directory). If a sweep was divided in
// several ways, those of the one division that is complete; throws UserError if that is not one.
std::vector<std::filesystem::path> find_shards(
    const std::vector<std::filesystem::path>& directories);

// The rows of all shards in the order of their points. A point that several have counts once.
// Throws UserError if they are not of one sweep, an input differs between them, or points are
// missing.
SweepTables merge_sweeps(const std::vector<std::filesystem::path>& directories);

}  // namespace mllmsim::sweep
