// Charts, through whichever backend was built.
#include "results/plot/chart.hpp"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <algorithm>
#include <chrono>
#include <optional>
#include <thread>

#include "cost_models/calibration/estimate.hpp"
#include "results/charts/calibration_chart.hpp"
#include "sim/base/errors.hpp"
#include "tests/temporary_directory.hpp"

namespace mllmsim {
using namespace charts;
using namespace costs;
using namespace fit;
using namespace plot;
namespace {

Chart tiny() {
  Chart chart;
  chart.title = "Squares";
  chart.x_label = "side (m)";
  chart.panel().y_label = "area (m2)";
  chart.panel().series = {{"measured", {1, 2, 3}, {1, 4.1, 8.9}, SeriesStyle::points},
                          {"exact", {1, 2, 3}, {1, 4, 9}, SeriesStyle::line},
                          {"bound", {1, 3}, {2, 10}, SeriesStyle::guide}};
  return chart;
}

// The PATH of this process, put back at the end.
class Path {
 public:
  explicit Path(const std::string& path) {
    if (const char* before = ::getenv("PATH")) before_ = before;
    ::setenv("PATH", path.c_str(), 1);
  }
  ~Path() { before_ ? ::setenv("PATH", before_->c_str(), 1) : ::unsetenv("PATH"); }

 private:
  std::optional<std::string> before_;
};

class Plot : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_EQ(std::system("gnuplot --version > /dev/null 2>&1"), 0) << "setup.sh installs gnuplot";
  }
  TemporaryDirectory dir_;
};

TEST_F(Plot, EveryFormatHasItsSignature) {
  for (const auto& [name, signature] :
       {std::pair{"a.svg", "<?xml"}, {"a.png", "\x89PNG\r\n\x1a\n"}, {"a.pdf", "%PDF-"}}) {
    save(tiny(), dir_ / name);
    EXPECT_TRUE(contents(dir_ / name).starts_with(signature)) << name;
  }
  EXPECT_EQ(dir_.entries(), 3u);
}

TEST_F(Plot, ShowsItsTexts) {
  save(tiny(), dir_ / "a.svg");
  const std::string svg = contents(dir_ / "a.svg");
  for (const char* text : {"Squares", "side (m)", "area (m2)", "measured", "exact", "bound"})
    EXPECT_NE(svg.find(text), std::string::npos) << text;
}

TEST_F(Plot, LogarithmicAxesAndASeriesForTheLegendOnly) {
  Chart chart = tiny();
  chart.log_x = chart.panel().log_y = true;
  chart.panel().series.push_back({"nothing measured", {}, {}, SeriesStyle::points});
  save(chart, dir_ / "a.svg");
  EXPECT_NE(contents(dir_ / "a.svg").find("nothing measured"), std::string::npos);
}

TEST_F(Plot, SameChartSameBytes) {
  const auto save_as = [&](const std::string& name) {
    for (const char* extension : {".svg", ".png", ".pdf"}) save(tiny(), dir_ / (name + extension));
  };
  save_as("a");
  std::this_thread::sleep_for(std::chrono::milliseconds(1100));  // a time stamp would differ
  save_as("b");
  for (const std::string extension : {".svg", ".png", ".pdf"})
    EXPECT_EQ(contents(dir_ / ("a" + extension)), contents(dir_ / ("b" + extension)));
}

TEST_F(Plot, NoTextReachesAShellOrEndsItsQuotes) {
  const std::string made = (dir_ / "made").string();
  const std::string command = "system(\"touch " + made + "\")";
  for (const std::string& text :
       {"`touch " + made + "`", "\"\n" + command + "\n\"", "'\n" + command + "\n'",
        "\\\"\n" + command, "\\'; " + command + " #", std::string("a\0b\r\tc", 6),
        std::string("trailing \\"), std::string("100 % <b> & {x}_1^2 @y ~z %s $data0")}) {
    Chart chart = tiny();
    chart.title = chart.x_label = chart.panel().y_label = text;
    for (Series& s : chart.panel().series) s.name = text;
    save(chart, dir_ / "a.svg");
    EXPECT_TRUE(contents(dir_ / "a.svg").ends_with("</svg>\n\n")) << text;
    EXPECT_FALSE(std::filesystem::exists(made)) << text;
  }
}

TEST_F(Plot, TextsAreShownAsTheyAre) {
  Chart chart = tiny();
  chart.title = "it's \"100 %\" of {x}_1^2 in C:\\new\\table @y ~z";
  save(chart, dir_ / "a.svg");
  EXPECT_NE(contents(dir_ / "a.svg").find(chart.title), std::string::npos);
}

TEST_F(Plot, APathIsOnlyAPath) {
  const std::filesystem::path file = dir_ / "it's `touch made` \"$HOME\".svg";
  save(tiny(), file);
  EXPECT_TRUE(std::filesystem::exists(file));
  EXPECT_EQ(dir_.entries(), 1u);
}

TEST_F(Plot, AnUnwritablePlaceIsTheMachinesFault) {
  EXPECT_THROW(save(tiny(), dir_ / "no/such/directory.svg"), EnvironmentError);
}

TEST(PlotMistakes, AnUnknownExtensionIsTheUsers) {
  const TemporaryDirectory dir;
  for (const char* name : {"a.bmp", "a", "a.PNG.txt", ".png"})
    EXPECT_THROW(save(tiny(), dir / name), UserError) << name;
  EXPECT_EQ(dir.entries(), 0u);
}

TEST(PlotMistakes, WithoutGnuplotItSaysWhatToInstall) {
  const TemporaryDirectory dir, empty;
  const Path path(empty.path().string());
  try {
    save(tiny(), dir / "a.png");
    FAIL() << "drew without gnuplot";
  } catch (const EnvironmentError& e) {
    EXPECT_NE(std::string(e.what()).find("install"), std::string::npos);
  }
  EXPECT_EQ(dir.entries(), 0u);
}

TEST(PlotMistakes, AGnuplotThatFailsLeavesNoFile) {
  const TemporaryDirectory dir, bin;
  std::filesystem::create_symlink("/bin/false", bin / "gnuplot");
  const Path path(bin.path().string());
  EXPECT_THROW(save(tiny(), dir / "a.png"), EnvironmentError);
  EXPECT_EQ(dir.entries(), 0u);
}

TEST(PlotMistakes, SeriesMustMatchTheAxes) {
  const TemporaryDirectory dir;
  Chart uneven = tiny(), negative = tiny();
  uneven.panel().series[0].y.pop_back();
  negative.panel().series[0].y[0] = 0;
  negative.panel().log_y = true;
  EXPECT_THROW(save(uneven, dir / "a.svg"), InternalError);
  EXPECT_THROW(save(negative, dir / "a.svg"), InternalError);
}

// --- measured against predicted ---

Calibration estimate() { return estimated_calibration("NVIDIA A100-SXM4-80GB"); }

TEST(CalibrationChart, APerfectPredictionIsOne) {
  const Calibration c = estimate();
  const Gemm gemm{4096, 4096, 4096};
  RawData raw;
  raw.gemm.push_back({{gemm, gemm_time(c.gemm, c.gpu, gemm).time}, false});
  const Chart chart = calibration_chart(c, raw, {});
  const Series& points = chart.panel().series.back();
  EXPECT_EQ(chart.panel().title, "GEMM, 1, median error 0.0 %");
  EXPECT_DOUBLE_EQ(points.y.front(), 1);
}

TEST(CalibrationChart, SustainedLoadCountsOnlyForWhatWasMeasuredUnderIt) {
  Calibration c = estimate();
  const Gemm gemm{4096, 4096, 4096};
  const Seconds burst = gemm_time(c.gemm, c.gpu, gemm).time;
  c.gemm.sustained.value = 1.25;
  RawData raw;
  raw.gemm = {{{gemm, burst}, false}, {{gemm, burst * 1.25}, true}};
  const Series points = calibration_chart(c, raw, {}).panel().series.back();
  EXPECT_DOUBLE_EQ(points.y[0], 1);
  EXPECT_DOUBLE_EQ(points.y[1], 1);
}

TEST(CalibrationChart, ThinsOutEvenlyWhateverTheOrder) {
  const Calibration c = estimate();
  RawData raw;
  for (int i = 1; i <= 5000; ++i) raw.gemm.push_back({{{512, 512, i}, Seconds{i * 1e-6}}, false});
  RawData backwards = raw;
  std::reverse(backwards.gemm.begin(), backwards.gemm.end());
  const Chart chart = calibration_chart(c, raw, {});
  const Series& points = chart.panel().series.back();
  EXPECT_TRUE(chart.panel().title.starts_with("GEMM, 2000 of 5000, "));
  EXPECT_EQ(points.x.size(), 2000u);
  EXPECT_EQ(points.x, calibration_chart(c, backwards, {}).panel().series.back().x);
}

TEST(CalibrationChart, ServingAttentionIsLeftOutAndCounted) {
  const Attention attention{{{2048, 1}}, 16, 16, 128, true, false};
  RawData raw;
  raw.attention = {{{attention, Seconds{1e-4}}, true}};
  EXPECT_THROW(calibration_chart(estimate(), raw, {}), UserError);
  raw.attention.push_back({{attention, Seconds{1e-4}}, false});
  const Chart chart = calibration_chart(estimate(), raw, {});
  EXPECT_TRUE(chart.title.ends_with("\n1 measurements of serving attention are left out"));
}

}  // namespace
}  // namespace mllmsim
