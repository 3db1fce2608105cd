#include "results/text/words.hpp"

#include <gtest/gtest.h>

#include <set>

namespace mllmsim::results {
namespace {

TEST(Words, NoTwoCausesOfIdleTimeSayTheSame) {
  std::set<std::string_view> seen;
  for (std::size_t k = 0; k < kBubbleKinds; ++k) {
    const std::string_view text = words(static_cast<BubbleKind>(k));
    EXPECT_TRUE(seen.insert(text).second) << text;
    EXPECT_EQ(text.find('_'), std::string_view::npos);
  }
}

TEST(Words, ColumnsCarryTheirUnit) {
  EXPECT_EQ(words_of_column("iteration_s"), "step time (s)");
  EXPECT_EQ(words_of_column("bubble_share_pp_other"),
            "waiting for a neighbour stage (share of the step)");
  EXPECT_EQ(words_of_column("cluster.nodes"), "nodes");
  EXPECT_EQ(words_of_column("data.equal_batch"), "equal batch");
  EXPECT_EQ(words_of_column("free_memory_bytes"), "free memory (GiB)");
  EXPECT_EQ(shown("free_memory_bytes", 3 * 1073741824.0), 3);
}

}  // namespace
}  // namespace mllmsim::results
