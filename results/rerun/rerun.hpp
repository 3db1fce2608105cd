// A run again, from what its results say of it: the scenario as resolved, its name, the hashes of
// calibration and data.
//
//   results of a run      metadata "scenario" --read--> Scenario --run--> tables, compared with all
//                         that are there
//   a row of a sweep      metadata "scenario" with its [sweep], and its point; the row and its
//                         stages are compared
//
// Shipped files are found by their names. Others are named as the scenario wrote them, without the
// directories of absolute paths, and are looked for from one directory.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "results/rerun/differences.hpp"

namespace mllmsim::rerun {

// Which row of a sweep; empty for a run.
struct Choice {
  std::optional<std::int64_t> point;
  std::map<std::string, std::string> where;  // column = value
};

struct Rerun {
  std::string run, strategy;
  std::vector<std::string> changed;  // since then: "calibration a100: hash 1 then, 2 now"
  std::vector<Difference> differences;
  std::size_t tables = 0, values = 0;  // compared
  std::string digest;                  // of the events, now

  bool same() const { return differences.empty() && changed.empty(); }
};

// `results`: the directory of a run or a sweep, or one Parquet file of it. `from`: where files are
// that the scenario names. Throws UserError if these are no results of ours, the choice is not one
// row, or the scenario cannot be read.
Rerun rerun(const std::filesystem::path& results, const Choice& choice,
            const std::filesystem::path& from);

}  // namespace mllmsim::rerun
