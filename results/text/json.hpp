// Runs for programs to read: the rows of runs, stages and steps under the names their Parquet
// columns have. Timelines (spans, memory) are left out; they are large, and Parquet has them.
#pragma once

#include <boost/json/fwd.hpp>
#include <optional>
#include <span>
#include <string>

#include "results/run/run_result.hpp"
#include "sim/tables/parquet.hpp"

namespace mllmsim::results {

// {"runs": [{..., "stages": [...], "steps": [...]}]}, indented, keys in a fixed order, ended by a
// newline. A number that is not finite is null.
// With a price for a GPU-hour each run says its cost.
std::string to_json(std::span<const RunResult> runs,
                    std::optional<double> price_per_gpu_hour = std::nullopt);

// The rows of a table likewise: {"NAME": [{...}]}.
std::string to_json(const tables::Table& table, const std::string& name);

}  // namespace mllmsim::results
