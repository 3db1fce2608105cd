#include "scenarios/files/shipped_files.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <system_error>

#include "scenarios/tree/toml_parse.hpp"
#include "sim/base/data_directory.hpp"
#include "sim/base/errors.hpp"
#include "sim/base/text.hpp"

namespace mllmsim::scenarios {
namespace {

namespace fs = std::filesystem;

struct Folder {
  const char* noun;
  const char* directory;
  const char* extension;
};

const Folder& folder(ShippedKind kind) {
  static constexpr Folder kFolders[] = {{"model", "scenarios/models", ".toml"},
                                        {"cluster", "scenarios/clusters", ".toml"},
                                        {"run", "scenarios/runs", ".toml"},
                                        {"data set", "scenarios/data", ".toml"},
                                        {"calibration", "cost_models/calibrations", ".json"},
                                        {"software", "scenarios/software", ".toml"},
                                        {"published family", "scenarios/published", ".toml"}};
  return kFolders[static_cast<std::size_t>(kind)];
}

std::vector<ShippedFile> files_in(const char* directory, const char* extension) {
  std::vector<ShippedFile> out;
  std::error_code error;  // a missing folder holds no files
  for (const auto& entry : fs::directory_iterator(data_directory() / directory, error))
    if (entry.path().extension() == extension)
      out.push_back({entry.path().stem().string(), "", entry.path()});
  std::sort(out.begin(), out.end(),
            [](const ShippedFile& a, const ShippedFile& b) { return a.name < b.name; });
  return out;
}

std::vector<ShippedFile> files(ShippedKind kind) {
  return files_in(folder(kind).directory, folder(kind).extension);
}

// Only the files whose tree satisfies `wanted`, with their descriptions.
template <class Predicate>
std::vector<ShippedFile> described(ShippedKind kind, Predicate wanted) {
  std::vector<ShippedFile> out;
  for (ShippedFile& file : files(kind)) {
    const Node root = parse_toml_file(file.path);
    if (!wanted(root)) continue;
    const Node* text = root.find("description");
    if (text && text->is<std::string>()) file.description = text->as<std::string>();
    out.push_back(std::move(file));
  }
  return out;
}

bool any(const Node&) { return true; }
bool has_llm(const Node& root) { return root.find("llm") || root.find("base"); }

bool is_path(const std::string& reference, ShippedKind kind) {
  return reference.find('/') != std::string::npos ||
         fs::path(reference).extension() == folder(kind).extension;
}

}  // namespace

std::vector<ShippedFile> shipped_models() { return described(ShippedKind::model, has_llm); }
std::vector<ShippedFile> shipped_encoders() {
  return described(ShippedKind::model, [](const Node& root) { return !has_llm(root); });
}
std::vector<ShippedFile> shipped_clusters() { return described(ShippedKind::cluster, any); }
std::vector<ShippedFile> shipped_software() { return described(ShippedKind::software, any); }
std::vector<ShippedFile> shipped_published() { return described(ShippedKind::published, any); }
std::vector<ShippedFile> shipped_runs() { return described(ShippedKind::run, any); }
std::vector<ShippedFile> shipped_data_sets() { return described(ShippedKind::data_set, any); }
std::vector<ShippedFile> shipped_pictures() {
  std::vector<ShippedFile> out = files_in(folder(ShippedKind::data_set).directory, ".jsonl");
  for (ShippedFile& file : out) file.description = "sizes of pictures and lengths of texts";
  return out;
}
std::vector<ShippedFile> shipped_calibrations() { return files(ShippedKind::calibration); }

fs::path locate(const std::string& reference, ShippedKind kind, const fs::path& from) {
  if (is_path(reference, kind)) return from / reference;
  return data_directory() / folder(kind).directory / (reference + folder(kind).extension);
}

std::string not_found(const std::string& reference, ShippedKind kind, const fs::path& located) {
  std::vector<std::string> names;
  for (const ShippedFile& file : files(kind)) names.push_back(file.name);
  if (!is_path(reference, kind))
    return fmt::format("no {} named \"{}\"{}", folder(kind).noun, reference,
                       near_or_all(reference, names));
  // A run is named before what is said of it, other files by the key that asks for them.
  const bool named = kind == ShippedKind::run && located == reference;
  const std::string where = named ? "" : ": " + located.string();
  return fmt::format("no such file{}{}", where, did_you_mean(located.stem().string(), names));
}

fs::path existing(const std::string& name, ShippedKind kind) {
  std::error_code error;
  if (fs::is_regular_file(name, error)) return name;
  fs::path located = locate(name, kind, "");
  if (!fs::exists(located, error))
    throw UserError(name, "",
                    fs::is_directory(name, error) ? "is a directory, not a file"
                                                  : not_found(name, kind, located));
  return located;
}

}  // namespace mllmsim::scenarios
