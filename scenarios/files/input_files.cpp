#include "scenarios/files/input_files.hpp"

#include <algorithm>
#include <vector>

#include "scenarios/files/portable.hpp"
#include "scenarios/tree/toml_parse.hpp"
#include "sim/base/files.hpp"
#include "sim/base/hash.hpp"

namespace mllmsim::scenarios {

namespace fs = std::filesystem;

struct InputFiles::Toml {
  std::string hash;
  Node root;
};

struct InputFiles::Calibrated {
  std::string hash;
  costs::Calibration calibration;
};

struct InputFiles::Data {
  std::string hash;
  std::shared_ptr<const data::DataSet> set;  // null after others took its room
  std::uint64_t used = 0;
};

namespace {

std::string hash_of(const data::DataSet& set) {
  std::string_view bytes(reinterpret_cast<const char*>(set.samples.data()),
                         set.samples.size() * sizeof(data::Sample));
  static_assert(sizeof(data::Sample) == 2 * sizeof(std::int32_t), "no padding to hash");
  static_assert(sizeof(data::Media) == 2 * sizeof(std::int32_t), "no padding to hash");
  std::string hash = hash_text(bytes);
  for (const std::vector<data::Media>& media : set.media)
    hash = hash_text(hash + std::string(reinterpret_cast<const char*>(media.data()),
                                        media.size() * sizeof(data::Media)));
  return hash;
}

}  // namespace

InputFiles::InputFiles() = default;
InputFiles::~InputFiles() = default;

const Node& InputFiles::toml(const fs::path& file) {
  const std::lock_guard lock(mutex_);
  auto& entry = tomls_[file.string()];
  if (!entry) {
    const std::string text = read_file(file, kSmallFile);
    entry = std::make_unique<Toml>(Toml{hash_text(text), parse_toml(text, file.string())});
  }
  return entry->root;
}

std::shared_ptr<const Node> InputFiles::resolved(const std::string& name,
                                                 const std::function<std::optional<Node>()>& load) {
  {
    const std::lock_guard lock(mutex_);
    if (const auto known = resolved_.find(name); known != resolved_.end()) return known->second;
  }
  std::optional<Node> loaded = load();  // asks for other files
  if (!loaded) return nullptr;
  const std::lock_guard lock(mutex_);
  return resolved_.try_emplace(name, std::make_shared<const Node>(std::move(*loaded)))
      .first->second;
}

const InputFiles::Calibrated& InputFiles::calibrated(const fs::path& file) {
  const std::lock_guard lock(mutex_);
  auto& entry = calibrations_[file.string()];
  if (!entry) {
    const std::string text = read_file(file, kLargeFile);
    entry = std::make_unique<Calibrated>(
        Calibrated{hash_text(text), costs::parse_calibration(text, file.string())});
  }
  return *entry;
}

const costs::Calibration& InputFiles::calibration(const fs::path& file) {
  return calibrated(file).calibration;
}

std::string InputFiles::calibration_hash(const fs::path& file) { return calibrated(file).hash; }

std::shared_ptr<const data::DataSet> InputFiles::data_set(
    const std::string& name, const std::function<data::DataSet()>& load) {
  const std::lock_guard lock(mutex_);
  std::unique_ptr<Data>& entry = data_sets_[name];
  if (!entry || !entry->set) {
    auto set = std::make_shared<const data::DataSet>(load());
    entry = std::make_unique<Data>(Data{hash_of(*set), set, 0});
    forget_data_sets();
  }
  entry->used = ++uses_;
  return entry->set;
}

// A sweep over seeds makes one data set per point: keep those used last.
void InputFiles::forget_data_sets() {
  constexpr std::size_t kKept = 8;
  std::vector<Data*> kept;
  for (const auto& [name, entry] : data_sets_)
    if (entry && entry->set && entry->used > 0) kept.push_back(entry.get());
  if (kept.size() < kKept) return;
  const auto oldest = std::min_element(
      kept.begin(), kept.end(), [](const Data* a, const Data* b) { return a->used < b->used; });
  (*oldest)->set.reset();
}

std::string InputFiles::data_hash(const std::shared_ptr<const data::DataSet>& set) const {
  if (!set) return "";
  const std::lock_guard lock(mutex_);
  for (const auto& [name, entry] : data_sets_)
    if (entry && entry->set == set) return entry->hash;
  return hash_of(*set);
}

std::map<std::string, std::string> InputFiles::hashes() const {
  const std::lock_guard lock(mutex_);
  std::map<std::string, std::string> out;
  for (const auto& [file, entry] : tomls_)
    if (entry) out.emplace(portable_name(file), entry->hash);
  for (const auto& [file, entry] : calibrations_)
    if (entry) out.emplace(portable_name(file), entry->hash);
  for (const auto& [name, entry] : data_sets_)
    if (entry) out.emplace(portable_name(name), entry->hash);
  return out;
}

}  // namespace mllmsim::scenarios
