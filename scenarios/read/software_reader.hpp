// The [software] table: what the training framework does (sim/world/software.hpp).
//
// Every key is listed once, with its range and where its default comes from: documented by the
// framework, an assumption about how it is run, or an estimate. The default itself is the struct's.
#pragma once

#include <string>
#include <vector>

#include "scenarios/tree/node.hpp"
#include "scenarios/tree/problems.hpp"
#include "sim/world/software.hpp"

namespace mllmsim::scenarios {

Software read_software(const Node& table, Problems& problems);

// A key in force: its value as a scenario would write it, and where that comes from.
struct SoftwareSetting {
  std::string key, value, source;
};
// Of a resolved [software] table, which may be empty: what it says itself comes from the framework
// file it names, or from the scenario; the rest are defaults.
std::vector<SoftwareSetting> software_settings(const Node& table);

}  // namespace mllmsim::scenarios
