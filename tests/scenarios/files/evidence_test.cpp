// Every constant of a shipped software or cluster file says what it rests on, and a fit says with
// which rows it was chosen.
#include "scenarios/files/evidence.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "scenarios/files/shipped_files.hpp"
#include "scenarios/tree/toml_parse.hpp"
#include "tests/scenarios/support.hpp"

namespace mllmsim::scenarios {
namespace {

TEST(Evidence, EveryConstantHasSome) {
  const std::vector<Evidence> all = shipped_evidence();
  EXPECT_GT(all.size(), 60U);
  for (const Evidence& e : all) {
    const std::string kind = e.text.substr(0, e.text.find(':'));
    const bool known =
        std::find(kEvidenceKinds.begin(), kEvidenceKinds.end(), kind) != kEvidenceKinds.end();
    EXPECT_TRUE(known) << e.file << ": " << e.key << ": " << e.text;
  }
}

TEST(Evidence, IsOfKeysThatTheFileSets) {
  for (const auto& files : {shipped_software(), shipped_clusters()})
    for (const ShippedFile& file : files) {
      const Node root = parse_toml_file(file.path);
      const Node* texts = root.find("evidence");
      ASSERT_TRUE(texts) << file.path;
      for (const auto& [key, text] : texts->as<Node::Table>())
        EXPECT_TRUE(root.find(key)) << file.path << ": " << key;
    }
}

}  // namespace
}  // namespace mllmsim::scenarios
