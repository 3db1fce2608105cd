#include "scenarios/input_files.hpp"

#include "cost_models/json_reader.hpp"
#include "scenarios/hash.hpp"
#include "scenarios/shipped_files.hpp"
#include "scenarios/toml_parse.hpp"

namespace mllmsim {

namespace fs = std::filesystem;

struct InputFiles::Toml {
  std::string hash;
  Node root;
};

struct InputFiles::Calibrated {
  std::string hash;
  Calibration calibration;
};

namespace {

std::string portable_name(const std::string& file) {
  const fs::path relative = fs::path(file).lexically_relative(data_directory());
  return relative.empty() || *relative.begin() == ".." ? file : relative.generic_string();
}

}  // namespace

InputFiles::InputFiles() = default;
InputFiles::~InputFiles() = default;

const Node& InputFiles::toml(const fs::path& file) {
  const std::lock_guard lock(mutex_);
  auto& entry = tomls_[file.string()];
  if (!entry) {
    const std::string text = read_small_file(file);
    entry = std::make_unique<Toml>(Toml{hash_text(text), parse_toml(text, file.string())});
  }
  return entry->root;
}

const InputFiles::Calibrated& InputFiles::calibrated(const fs::path& file) {
  const std::lock_guard lock(mutex_);
  auto& entry = calibrations_[file.string()];
  if (!entry) {
    const std::string text = read_text(file);
    entry = std::make_unique<Calibrated>(
        Calibrated{hash_text(text), parse_calibration(text, file.string())});
  }
  return *entry;
}

const Calibration& InputFiles::calibration(const fs::path& file) {
  return calibrated(file).calibration;
}

std::string InputFiles::calibration_hash(const fs::path& file) { return calibrated(file).hash; }

std::map<std::string, std::string> InputFiles::hashes() const {
  const std::lock_guard lock(mutex_);
  std::map<std::string, std::string> out;
  for (const auto& [file, entry] : tomls_)
    if (entry) out.emplace(portable_name(file), entry->hash);
  for (const auto& [file, entry] : calibrations_)
    if (entry) out.emplace(portable_name(file), entry->hash);
  return out;
}

}  // namespace mllmsim
