// The files that come with the program, found wherever it is run or installed: DATA is
// data_directory() (sim/base).
//
//   DATA/scenarios/{models,clusters,software,runs,published}/NAME.toml
//   DATA/cost_models/calibrations/NAME.json
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace mllmsim::scenarios {

struct ShippedFile {
  std::string name;  // what a scenario calls it
  std::string description;
  std::filesystem::path path;
};

// By name. Models without an LLM are encoders: parts for other models.
std::vector<ShippedFile> shipped_models();
std::vector<ShippedFile> shipped_encoders();
std::vector<ShippedFile> shipped_clusters();
std::vector<ShippedFile> shipped_software();  // framework generations
std::vector<ShippedFile> shipped_runs();
std::vector<ShippedFile> shipped_published();     // families of runs that others measured
std::vector<ShippedFile> shipped_data_sets();     // mixtures to generate
std::vector<ShippedFile> shipped_pictures();      // .jsonl files beside them, for data.set
std::vector<ShippedFile> shipped_calibrations();  // without descriptions

// One of the folders above, and the files in it.
enum class ShippedKind : std::uint8_t {
  model,
  cluster,
  run,
  data_set,
  calibration,
  software,
  published
};

// What `reference`, written in a file of directory `from`, means: a path if it has a slash or an
// extension, relative to `from`; otherwise a shipped name. Need not exist.
std::filesystem::path locate(const std::string& reference, ShippedKind kind,
                             const std::filesystem::path& from);

// Why locate() found nothing: "no model named "x"; did you mean "y"?", or "no such file: x".
std::string not_found(const std::string& reference, ShippedKind kind,
                      const std::filesystem::path& located);

// What a word on the command line stands for: the path itself if it is a file, else the shipped
// file of that name. Throws UserError if there is neither.
std::filesystem::path existing(const std::string& name, ShippedKind kind);

}  // namespace mllmsim::scenarios
