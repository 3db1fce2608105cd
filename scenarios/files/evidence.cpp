#include "scenarios/files/evidence.hpp"

#include <algorithm>

#include "scenarios/files/shipped_files.hpp"
#include "scenarios/tree/toml_parse.hpp"

namespace mllmsim::scenarios {
namespace {

constexpr std::array<std::string_view, 6> kNames = {"base",  "calibration", "description",
                                                    "nodes", "evidence",    "topology"};

void add(std::vector<Evidence>& out, const std::string& folder,
         const std::vector<ShippedFile>& files) {
  for (const ShippedFile& file : files) {
    const Node root = parse_toml_file(file.path);
    const Node* texts = root.find("evidence");
    for (const auto& [key, value] : root.as<Node::Table>()) {
      if (std::find(kNames.begin(), kNames.end(), key) != kNames.end()) continue;
      const Node* text = texts ? texts->find(key) : nullptr;
      out.push_back({folder + "/" + file.name, key, to_inline_toml(value),
                     text && text->is<std::string>() ? text->as<std::string>() : ""});
    }
  }
}

}  // namespace

std::vector<Evidence> shipped_evidence() {
  std::vector<Evidence> out;
  add(out, "software", shipped_software());
  add(out, "clusters", shipped_clusters());
  return out;
}

}  // namespace mllmsim::scenarios
