// A scenario: everything one run needs, from a run file and the command line. scenarios/README.md
// says how to write one.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "sim/base/errors.hpp"
#include "strategies/job/job.hpp"

namespace mllmsim::scenarios {

class InputFiles;
struct Node;

struct Scenario {
  Job job;                            // everything resolved
  std::filesystem::path calibration;  // empty if times are given
  // The run with all files merged and overrides applied, as canonical TOML with portable names.
  std::string text;
  std::string hash;  // of the text
  // Hash of what is trained on what: the model's sizes, the samples' lengths, how many. Names and
  // everything about how it is done are left out, so runs with equal work can be compared.
  std::string work;
  std::filesystem::path file;
  std::string description;
  std::vector<std::string> assumptions;
  std::shared_ptr<const Node> tree;  // what `text` is, with positions

  // The same error, its problems without a place (those found while planning) at that of their key.
  UserError placed(const UserError& error) const;
};

// Reads a run file, or a shipped run by name. Overrides are "a.b=c", where c is a TOML value or
// else a bare string. Throws UserError with every problem found. Many readings may share `files`.
Scenario read_scenario(const std::filesystem::path& file,
                       const std::vector<std::string>& overrides = {}, InputFiles* files = nullptr);

// The same from a scenario's text, such as a result's metadata has; paths start from the current
// directory. `name` stands for the file in messages.
Scenario read_scenario_text(const std::string& text, const std::string& name,
                            const std::vector<std::string>& overrides = {},
                            InputFiles* files = nullptr);

// The file a run's name stands for: a path, or a shipped run. Throws UserError if there is none.
std::filesystem::path run_file(const std::string& name);

// The same from a tree that may have been changed since it was read from `file`.
Scenario read_scenario_tree(Node run, const std::filesystem::path& file,
                            InputFiles* files = nullptr);

// A model file, or a shipped model by name, alone.
Model read_model_file(const std::string& name);

}  // namespace mllmsim::scenarios
