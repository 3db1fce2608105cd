// Runs the points of a sweep on all cores, each finished one at once into the journal; what the
// journal has already is not run again.
//
// A point is known by the hash of its name, its scenario as resolved, the contents of its
// calibration and data set, and the program itself, so a change to any of them makes it another
// point. What cannot be read or planned is a row with its reason. Results do not depend on threads
// or on interruptions.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "results/run/run_result.hpp"
#include "results/run/run_scenario.hpp"
#include "scenarios/files/input_files.hpp"
#include "scenarios/read/scenario.hpp"
#include "scenarios/sweeps/sweep.hpp"
#include "sim/base/errors.hpp"
#include "sim/base/progress.hpp"
#include "sim/tables/parquet.hpp"

namespace mllmsim::sweep {

// Shard i of n takes every n-th point, from the i-th on.
struct Shard {
  std::size_t index = 1, count = 1;

  // How many points it takes.
  std::size_t of(std::size_t points) const {
    return points < index ? 0 : (points - index) / count + 1;
  }
};

// Where the results of a shard are, in the directory of its sweep.
std::filesystem::path shard_directory(const std::filesystem::path& sweep, const Shard& shard);

struct SweepJob {
  std::filesystem::path file;
  std::vector<std::string> overrides;  // of every point
  scenarios::Sweep sweep;
  Shard shard;
};

struct SweepResult {
  std::vector<std::size_t> points;       // this shard's, in order
  std::vector<results::RunResult> runs;  // one per point; stages, but no steps or timelines
  tables::Metadata metadata;             // of the files to write
  std::size_t found = 0;                 // points that the journal had
  std::size_t aside = 0;                 // records of it that belong to none
  bool interrupted = false;              // then runs are not all there
};

// A point: its figures and stages, or why it cannot be planned.
results::RunResult simulated_point(const scenarios::Scenario& scenario,
                                   scenarios::InputFiles& files, results::Simulators& simulators);
// The reason of a point that cannot be read or planned.
std::string reason_of(const UserError& error);

// Throws UserError if it is not the variation that is wrong: no point can be read, or, of many, a
// few over the whole sweep all have the same problem, such as a key that does not exist. Reads
// those few at most.
void require_readable(const SweepJob& job, scenarios::InputFiles& files);

// `stop` is asked before every point. Begins with require_readable().
SweepResult run_sweep(const SweepJob& job, const std::filesystem::path& directory,
                      Progress& progress, const std::function<bool()>& stop);

}  // namespace mllmsim::sweep
