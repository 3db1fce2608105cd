// Runs for programs to read: the rows of runs, stages and steps under the names their Parquet
// columns have. Timelines (spans, memory) are left out; they are large, and Parquet has them.
#pragma once

#include <boost/json/fwd.hpp>
#include <span>
#include <string>

#include "results/run_result.hpp"

namespace mllmsim {

// {"runs": [{..., "stages": [...], "steps": [...]}]}, indented, keys in a fixed order, ended by a
// newline. A number that is not finite is null.
std::string to_json(std::span<const RunResult> runs);

// Any JSON in that form.
std::string json_text(const boost::json::value& value);

}  // namespace mllmsim
