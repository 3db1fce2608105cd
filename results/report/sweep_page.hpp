// One HTML file about a sweep that needs nothing else: what is best, a heat map over two of its
// keys, the frontier of GPU-days and time, a table that sorts and filters, and the figures of a
// chosen run.
#pragma once

#include <optional>
#include <string>

#include "sim/tables/parquet.hpp"

namespace mllmsim::report {

// Whether it is the runs table of a sweep, not of one run.
bool is_sweep(const tables::ParquetFile& runs);

// `directory`: where it was read; `price` of a GPU-hour, if the page shall say what points cost.
// UserError if a column is missing.
std::string sweep_to_html(const tables::ParquetFile& runs, const std::string& directory,
                          std::optional<double> price);

}  // namespace mllmsim::report
