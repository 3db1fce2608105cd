// What a word of the command line that names a run stands for: a scenario file, the name of a
// shipped run, or a directory that `mllmsim run` wrote, whose scenario is read.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "scenarios/read/scenario.hpp"

namespace mllmsim::cli {

using ReadRun = std::function<scenarios::Scenario(const std::vector<std::string>& more)>;

// Reads the run with these overrides, and with more at each call.
ReadRun read_run(const std::string& word, const std::vector<std::string>& overrides);

}  // namespace mllmsim::cli
