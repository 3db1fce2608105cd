// The timelines of a report, as its script reads them.
//
// Every span is in there, as columns of binary numbers, gzipped and in base64: gaps and durations
// in ns (float64), bytes (float64), micro-batch (int32), kind (uint16, an index) and chunk (int16).
// Rows (a stream of a lane) follow each other; in each, spans are in the order of time and gaps
// count from the end of the span before. timeline.js reads the same.
#pragma once

#include <boost/json.hpp>
#include <span>

#include "results/run/run_result.hpp"

namespace mllmsim::report {

// {"looks": [...],                   kinds of a step point into it
//  "streams": [{"name", "strip"}],   rows of a step point into it
//  "strips": how many there are,
//  "runs": [{"name", "strategy",
//            "steps": [{"step", "end", "lanes", "rows", "kinds", "spans", "blob"}],
//            "left_out"}]}
boost::json::object timeline_data(std::span<const results::RunResult> runs);

}  // namespace mllmsim::report
