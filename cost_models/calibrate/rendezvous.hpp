// Passing a few bytes from node 0 to the others through a shared file system.
#pragma once

#include <string>

#include "cost_models/calibrate/backend.hpp"

namespace mllmsim::calibrate {

// Node 0 leaves `bytes` in FILE.<name> (whole or not at all) and returns them; the others return
// what they find there. Throws UserError if node 0 finds a file of an earlier run,
// EnvironmentError after ten minutes of waiting.
std::string exchange(const Rendezvous& rendezvous, const std::string& name,
                     const std::string& bytes);

// Node 0 removes what it left.
void clean_up(const Rendezvous& rendezvous, const std::string& name);

}  // namespace mllmsim::calibrate
