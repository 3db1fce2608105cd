// Pictures for pages: dark ones, and narrow ones for phones.
#include <gtest/gtest.h>

#include "results/plot/dark_svg.hpp"
#include "results/plot/narrow.hpp"

namespace mllmsim::plot {
namespace {

TEST(DarkSvg, FindsAColourHoweverItIsSpelt) {
  for (const char* black : {"'black'", "\"#000000\"", "\"rgb(0,0,0)\"", "'rgb(  0,   0,   0)'"})
    EXPECT_NE(with_dark_colours("<svg><g fill=" + std::string(black) + "/></svg>")
                  .find("<g fill=\"#000000\"/>"),
              std::string::npos)
        << black;
  EXPECT_NE(with_dark_colours("<svg><g color='#FFFFFF'>").find("<g color=\"#ffffff\">"),
            std::string::npos);
}

TEST(DarkSvg, LeavesTheRestAsItWas) {
  for (const char* rest : {"<g fill='none' stroke=\"currentColor\"/>", "<a fill=\"rgb(0,0,256)\"/>",
                           "<a fill=\"rgb(0,0)\"/>", "<a fill=\"#00000g\"/>", "<a fill=\"black",
                           "<a fill=", "<text>fill=\"black\"</text>", "<a title=\"fill\"/>"})
    EXPECT_TRUE(with_dark_colours(std::string("<svg>") + rest).ends_with(rest)) << rest;
}

TEST(DarkSvg, OneStyleSheetRightBehindTheFirstTag) {
  const std::string svg = with_dark_colours("<?xml?>\n<svg\n width='1'>\n<svg></svg></svg>");
  EXPECT_TRUE(svg.starts_with("<?xml?>\n<svg\n width='1'>\n<style>"));
  EXPECT_EQ(svg.find("<style>"), svg.rfind("<style>"));
}

Chart wide() {
  Chart chart;
  chart.title = "memory of a GPU of each stage over a step of the training";  // 57 letters
  chart.columns = 4;
  chart.panels.resize(4);
  for (int i = 0; i < 40; ++i) chart.x_ticks.push_back({i * 1.0, std::to_string(i)});
  for (int i = 0; i < 40; ++i) chart.panel().texts.push_back({i * 1.0, 0, "10 %"});
  chart.panels[1].texts = {{0, 0, "10 %"}};
  return chart;
}

TEST(Narrow, PanelsOneBelowTheOtherWithTitlesThatFit) {
  const Chart chart = narrow(wide());
  EXPECT_EQ(chart.width_px, kNarrowPx);
  EXPECT_EQ(chart.columns, 1u);
  EXPECT_GT(chart.height_px, chart.width_px);
  EXPECT_EQ(chart.title, "memory of a GPU of each stage over a step of\nthe training");
}

// 40 names of 2 letters, 30 px each with a blank, in 350 px: every fourth.
TEST(Narrow, LeavesOutWhatWouldMeet) {
  const Chart chart = narrow(wide());
  ASSERT_EQ(chart.x_ticks.size(), 10u);
  EXPECT_EQ(chart.x_ticks[1].text, "4");
  EXPECT_TRUE(chart.panels[0].texts.empty());
  EXPECT_EQ(chart.panels[1].texts.size(), 1u);
}

}  // namespace
}  // namespace mllmsim::plot
