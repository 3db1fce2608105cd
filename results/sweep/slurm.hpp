// A sweep on a cluster that Slurm runs: a job array, one task per shard, and a merge job that
// depends on it. Everything lies in the sweep's directory, which all nodes must see:
//
//   slurm/shard.sh, merge.sh   what is submitted
//   slurm/jobs                 which jobs run it now
//   slurm/*.log                what the tasks say
//   shard-I-of-N/              a shard's journal and results
//
// A task that Slurm requeues continues its shard's journal. The same command given again waits for
// jobs that still run, and otherwise submits anew, which repeats no finished point.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "sim/base/progress.hpp"

namespace mllmsim::sweep {

struct SlurmSweep {
  std::filesystem::path directory;
  std::vector<std::string> arguments;  // of `mllmsim sweep`, without --shard, --out and --threads
  std::size_t points = 0;
  std::size_t shards = 1;
  unsigned threads = 1;              // of a task
  std::string partition;             // empty: Slurm's default
  std::vector<std::string> options;  // further ones for sbatch, such as --account=x
};

struct SlurmJobs {
  std::string array, merge;  // Slurm's numbers
  bool submitted = false;    // just now; otherwise they were found running
};

// Throws EnvironmentError with what Slurm said if it refuses, or if another sweep runs there.
SlurmJobs submit(const SlurmSweep& sweep);

// Until the merge has written its results; false if `stop` asked to leave earlier. Throws
// EnvironmentError with the end of a log if a shard or the merge failed.
bool wait_for(const SlurmSweep& sweep, const SlurmJobs& jobs, Progress& progress,
              const std::function<bool()>& stop);

}  // namespace mllmsim::sweep
