#include "sim/base/progress.hpp"

#include <gtest/gtest.h>

namespace mllmsim {
namespace {

TEST(Progress, SaysRateAndTimeLeft) {
  EXPECT_EQ(progress_text(1000, 10000, 300), "1000 of 10000 points, 300/s, 0:30 left");
  EXPECT_EQ(progress_text(1, 10000, 1.5), "1 of 10000 points, 1.5/s, 1:51:06 left");
  EXPECT_EQ(progress_text(10, 10, 2), "10 of 10 points, 2.0/s");
  EXPECT_EQ(progress_text(0, 10, 0), "0 of 10 points");
}

TEST(Progress, TheBarFillsUp) {
  EXPECT_TRUE(progress_bar(1, 2, 1).starts_with("[===============               ] 1 of 2"));
  EXPECT_TRUE(progress_bar(2, 2, 1).starts_with("[==============================] 2 of 2"));
}

// Twenty points at once, in a log: the last line only.
TEST(Progress, PlainLinesAreFew) {
  std::FILE* out = std::tmpfile();
  {
    Progress progress(out, /*terminal=*/false);
    progress.begin(20);
    for (int i = 0; i < 20; ++i) progress.done(true);
  }
  std::rewind(out);
  char line[200];
  ASSERT_TRUE(std::fgets(line, sizeof line, out));
  EXPECT_TRUE(std::string(line).starts_with("20 of 20 points"));
  EXPECT_FALSE(std::fgets(line, sizeof line, out));
  std::fclose(out);
}

}  // namespace
}  // namespace mllmsim
