#include <gtest/gtest.h>

#include "sim/base/hash.hpp"
#include "sim/base/text.hpp"

namespace mllmsim {
namespace {

TEST(EditDistance, CountsInsertionsReplacementsAndSwaps) {
  EXPECT_EQ(edit_distance("nodes", "nodes"), 0u);
  EXPECT_EQ(edit_distance("node", "nodes"), 1u);
  EXPECT_EQ(edit_distance("modes", "nodes"), 1u);
  EXPECT_EQ(edit_distance("ndoes", "nodes"), 1u);
  EXPECT_EQ(edit_distance("", "nodes"), 5u);
}

TEST(DidYouMean, NearestName) {
  EXPECT_EQ(did_you_mean("balancd", {"balanced", "baseline"}), "; did you mean \"balanced\"?");
}

TEST(DidYouMean, SaysNothingIfNothingIsNear) {
  EXPECT_EQ(did_you_mean("optimus", {"balanced", "baseline"}), "");
  EXPECT_EQ(did_you_mean("x", {"pp"}), "");
}

TEST(Hash, IsFnv1a) {  // test vectors of the FNV authors
  EXPECT_EQ(hash_text(""), "cbf29ce484222325");
  EXPECT_EQ(hash_text("foobar"), "85944171f73967e8");
}

}  // namespace
}  // namespace mllmsim
