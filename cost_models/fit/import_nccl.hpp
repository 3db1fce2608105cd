// nccl-tests output as raw measurements: text logs of any layout, or the JSON that -J writes.
//
// One text file may hold several tests, each after "# Collective test starting: NAME"; older logs
// lack that line and the operation is taken from the file name. "# Rank" lines give ranks and
// hosts, the "# size ..." line the columns. Out-of-place times are taken, in-place ones where those
// are missing. sendrecv becomes point-to-point messages if all ranks share a node or none do;
// operations without a model (all-to-all, broadcast, ...) are skipped.
#pragma once

#include <filesystem>
#include <string>

#include "cost_models/fit/raw_data.hpp"

namespace mllmsim::fit {

// `op`: what was measured ("all_reduce", "sendrecv") if neither the log nor the file's name says.
// Throws UserError if it is no operation that has a model.
RawData import_nccl(const std::filesystem::path& file, const std::string& op = "");
RawData parse_nccl(const std::string& text, const std::string& file, const std::string& op = "");

}  // namespace mllmsim::fit
