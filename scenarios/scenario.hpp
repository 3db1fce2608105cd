// A scenario: everything one run needs, from a run file and the command line. scenarios/README.md
// says how to write one.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "scenarios/node.hpp"
#include "scenarios/shipped_files.hpp"
#include "strategies/job.hpp"

namespace mllmsim {

struct Scenario {
  Job job;                            // everything resolved
  std::filesystem::path calibration;  // empty if times are given
  std::string text;  // the run with all files merged and overrides applied, as canonical TOML
  std::string hash;  // of the text
  std::filesystem::path file;
  std::string description;
  std::vector<std::string> assumptions;
};

// Reads a run file, or a shipped run by name. Overrides are "a.b=c", where c is a TOML value or
// else a bare string. Throws UserError with every problem found.
Scenario read_scenario(const std::filesystem::path& file,
                       const std::vector<std::string>& overrides = {});

// The same from a tree that may have been changed since it was read from `file`.
Scenario read_scenario_tree(Node run, const std::filesystem::path& file);

// A model file, or a shipped model by name, alone.
Model read_model_file(const std::string& name);

}  // namespace mllmsim
