#include "sim/base/progress.hpp"

#include <gtest/gtest.h>

namespace mllmsim {
namespace {

TEST(Progress, SaysRateAndTimeLeft) {
  EXPECT_EQ(progress_text({1000, 10000, 300, 30}), "1000 of 10000 points, 300/s, 0:30 left");
  EXPECT_EQ(progress_text({1, 10000, 1.5, 6666}), "1 of 10000 points, 1.5/s, 1:51:06 left");
  EXPECT_EQ(progress_text({10, 10, 2, 0}), "10 of 10 points, 2.0/s");
  EXPECT_EQ(progress_text({0, 10, 0, 0}), "0 of 10 points");
  EXPECT_EQ(progress_text({12, 27, 0.5, 65, "measurements", "gemm"}),
            "12 of 27 measurements, 0.5/s, 1:05 left, gemm");
}

TEST(Progress, TheBarFillsUp) {
  EXPECT_EQ(progress_bar(0.5, {1, 2}), "[===============               ] 1 of 2 points");
  EXPECT_EQ(progress_bar(1, {2, 2}), "[==============================] 2 of 2 points");
}

std::string written(std::FILE* out) {
  std::rewind(out);
  std::string text(1000, '\0');
  text.resize(std::fread(text.data(), 1, text.size(), out));
  std::fclose(out);
  return text;
}

// One item of two, but nine tenths of the weight: 27 of 30 marks. The note stands above the bar.
TEST(Progress, HeavyItemsFillMoreOfTheBar) {
  std::FILE* out = std::tmpfile();
  {
    Progress progress(out, /*terminal=*/true);
    progress.begin(2, "tasks", 10);
    progress.done(9, "heavy");
    progress.note("a note");
  }
  const std::string text = written(out);
  EXPECT_TRUE(text.starts_with("\r[===========================   ] 1 of 2 tasks")) << text;
  EXPECT_TRUE(text.ends_with(", heavy\033[K\r\033[Ka note\n")) << text;
}

// Twenty points at once, in a log: the last line only.
TEST(Progress, PlainLinesAreFew) {
  std::FILE* out = std::tmpfile();
  {
    Progress progress(out, /*terminal=*/false);
    progress.begin(20);
    for (int i = 0; i < 20; ++i) progress.done(true);
  }
  const std::string text = written(out);
  EXPECT_TRUE(text.starts_with("20 of 20 points")) << text;
  EXPECT_EQ(text.find('\n'), text.size() - 1);
}

// Two jobs on one bar: the second begins at nothing done.
TEST(Progress, CountsEachJobAnew) {
  std::FILE* out = std::tmpfile();
  {
    Progress progress(out, /*terminal=*/true);
    for (const std::size_t total : {3, 2}) {
      progress.begin(total, "remedies");
      for (std::size_t i = 0; i < total; ++i) progress.done(true);
      progress.end();
    }
  }
  const std::string text = written(out);
  EXPECT_NE(text.find("3 of 3 remedies"), std::string::npos) << text;
  EXPECT_NE(text.find("2 of 2 remedies"), std::string::npos) << text;
}

// What is over within its patience is not talked about.
TEST(Progress, IsSilentAboutWhatIsQuick) {
  std::FILE* out = std::tmpfile();
  {
    Progress progress(out, /*terminal=*/true, std::chrono::hours(1));
    progress.begin(1);
    progress.done(true);
  }
  EXPECT_EQ(written(out), "");
}

}  // namespace
}  // namespace mllmsim
