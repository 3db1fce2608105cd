// Pictures of tables as values.
#include "results/charts/table_charts.hpp"

#include <gtest/gtest.h>

#include "results/run/run_tables.hpp"
#include "sim/base/errors.hpp"

namespace mllmsim {
using namespace charts;
using namespace costs;
using namespace plot;
using namespace results;
using namespace tables;
namespace {

using Integers = std::vector<std::int64_t>;
using Numbers = std::vector<double>;

struct Row {
  const char* strategy;
  std::int64_t nodes;
  double gpu_days;
  bool fits = true;
  std::int64_t steps = 1;
};

// A sweep over cluster.nodes, and the cluster's name as words.
Table sweep(const std::vector<Row>& rows) {
  std::vector<RunResult> runs;
  Integers nodes;
  StringColumn words;
  for (const Row& row : rows) {
    RunResult run;
    run.strategy = row.strategy;
    run.gpu_days = row.gpu_days;
    run.samples = 1;
    run.fits = row.fits;
    run.simulated_steps = row.steps;
    runs.push_back(run);
    nodes.push_back(row.nodes);
    words.push_back(row.nodes > 4 ? "big" : "small");
  }
  Table table = runs_table(runs);
  table.columns.emplace_back("cluster.nodes", nodes);
  table.columns.emplace_back("cluster.name", words);
  return table;
}

const Table kSweep = sweep({{"baseline", 8, 30},
                            {"balanced", 8, 20},
                            {"baseline", 4, 40},
                            {"balanced", 4, 20},
                            {"balanced", 16, 99, false}});

std::vector<const Series*> of_style(const Chart& chart, SeriesStyle style) {
  std::vector<const Series*> out;
  for (const Series& s : chart.panel().series)
    if (s.style == style) out.push_back(&s);
  return out;
}

SweepPicture over_nodes() {
  SweepPicture p;
  p.x = "cluster.nodes";
  return p;
}

Table without_words() {
  Table table = kSweep;
  table.columns.pop_back();
  return table;
}

TEST(SweepChart, ALineAStrategyInTheOrderOfX) {
  const Chart chart = sweep_chart(without_words(), {});  // the one key that varies
  const auto lines = of_style(chart, SeriesStyle::line);
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_EQ(lines[0]->name, "baseline");
  EXPECT_EQ(lines[0]->x, (Numbers{4, 8}));
  EXPECT_EQ(lines[0]->y, (Numbers{40, 30}));
  EXPECT_EQ(chart.x_label, "nodes");
  EXPECT_EQ(chart.panel().y_label, "GPU-days");
}

TEST(SweepChart, TellsWhatDoesNotFitFromWhatCannotBePlanned) {
  const auto title = [](const Table& table) { return sweep_chart(table, over_nodes()).title; };
  EXPECT_TRUE(title(without_words()).ends_with("\nleft out: 1 point does not fit in memory"));
  const Row good{"baseline", 8, 30}, misfit{"baseline", 4, 9, false}, none{"a", 2, 0, false, 0};
  EXPECT_TRUE(title(sweep({good, none})).ends_with("\nleft out: 1 point cannot be planned"));
  EXPECT_TRUE(title(sweep({good, misfit, none, none}))
                  .ends_with("\nleft out: 1 point does not fit in memory, 2 cannot be planned"));
}

TEST(SweepChart, WhatElseVariesIsInTheName) {
  const Chart chart = sweep_chart(kSweep, over_nodes());
  EXPECT_EQ(chart.panel().series.front().name, "baseline, name big");
}

TEST(SweepChart, WordsArePlacesOnTheAxis) {
  SweepPicture words;
  words.x = "cluster.name";
  words.where = {{"cluster.nodes", "8"}};
  const Chart chart = sweep_chart(kSweep, words);
  ASSERT_EQ(chart.x_ticks.size(), 1u);
  EXPECT_EQ(chart.x_ticks[0].text, "big");
  EXPECT_EQ(of_style(chart, SeriesStyle::points).size(), 2u);
}

TEST(SweepChart, MistakesSayWhatExists) {
  const auto with = [](auto set) {
    SweepPicture p;
    set(p);
    return p;
  };
  EXPECT_THROW(sweep_chart(kSweep, with([](auto& p) { p.x = "nodes"; })), UserError);
  EXPECT_THROW(sweep_chart(kSweep, with([](auto& p) { p.y = "model"; })), UserError);
  EXPECT_THROW(sweep_chart(kSweep, with([](auto& p) {
                             p.where = {{"cluster.nodes", "5"}};
                           })),
               UserError);
  EXPECT_THROW(speedup_chart(kSweep, with([](auto& p) { p.baseline = "zero3"; })), UserError);
}

// 40 / 20 at 4 nodes, 30 / 20 at 8.
TEST(SpeedupChart, AgainstTheBaselineOfTheSamePoint) {
  const Chart chart = speedup_chart(without_words(), {});
  const auto found = of_style(chart, SeriesStyle::line);
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[1]->name, "balanced");
  EXPECT_EQ(found[1]->y, (Numbers{2, 1.5}));
}

TEST(SpeedupChart, RunsOfOnePointAreBars) {
  Table table = sweep({{"baseline", 4, 40}, {"balanced", 4, 20}});
  const Chart chart = speedup_chart(table, {});
  ASSERT_EQ(chart.panel().boxes.size(), 2u);
  EXPECT_EQ(chart.panel().boxes[1].boxes[0].y1, 2);
}

// Packs {3 + 1} and {2 + 2} of tiles; before them micro-batches of two samples in some order.
TEST(PackingChart, SortedSizesBeforeAndAfter) {
  const Table packs{{{"pack", Integers{0, 0, 1, 1}},
                     {"tiles", Integers{3, 1, 2, 2}},
                     {"tokens", Integers{30, 10, 20, 30}}}};
  const Chart chart = packing_chart({packs, {{"q_v", "4"}, {"seed", "7"}}});
  ASSERT_EQ(chart.panels.size(), 2u);
  EXPECT_EQ(chart.panels[0].series[1].y, (Numbers{4, 4}));
  EXPECT_EQ(chart.panels[1].series[1].y, (Numbers{40, 50}));
  EXPECT_EQ(chart.panels[0].series[0].y.size(), 2u);
  EXPECT_EQ(chart.panels[0].series[0].y[0] + chart.panels[0].series[0].y[1], 8);
  EXPECT_EQ(chart.panels[0].series[2].y, (Numbers{4, 4}));  // Q_v
}

TEST(PackingChart, AnotherTableIsTheUsersMistake) {
  EXPECT_THROW(packing_chart({kSweep, {}}), UserError);
  EXPECT_THROW(
      packing_chart({{{{"pack", Integers{}}, {"tiles", Integers{}}, {"tokens", Integers{}}}}, {}}),
      UserError);
  EXPECT_THROW(
      packing_chart(
          {{{{"pack", Integers{9}}, {"tiles", Integers{1}}, {"tokens", Integers{1}}}}, {}}),
      UserError);
}

TEST(ValidationChart, CountsWhatIsWithinTheBand) {
  StringColumn metric;
  for (const char* m : {"iteration_s", "iteration_s", "mfu", "fits"}) metric.push_back(m);
  const Table rows{{{"metric", metric},
                    {"predicted", Numbers{1.05, 3, 0.4, 1}},
                    {"published", Numbers{1, 2, 0, 1}}}};
  const Chart chart = validation_chart(rows);
  EXPECT_EQ(chart.title,
            "1 of 2 predictions within 10 % of what was published\n"
            "1 without a positive figure are left out");
  ASSERT_EQ(chart.panels.size(), 1u);
  EXPECT_EQ(chart.panel().title, "step time (s)\n2, median error 27.5 %");
}

TEST(ValidationChart, AKindOfFigureHasAxesOfItsOwn) {
  StringColumn metric;
  for (const char* m : {"iteration_s", "stages.1.blocks", "stages.2.blocks"}) metric.push_back(m);
  const Table rows{
      {{"metric", metric}, {"predicted", Numbers{1, 20, 40}}, {"published", Numbers{1, 20, 40}}}};
  const Chart chart = validation_chart(rows);
  ASSERT_EQ(chart.panels.size(), 2u);
  EXPECT_TRUE(chart.panels[0].title.starts_with("layers of a stage\n2"));
  EXPECT_EQ(chart.panels[0].own_x->range, (Range{16, 50}));
  EXPECT_EQ(chart.panels[1].own_x->range, (Range{0.8, 1.25}));
}

}  // namespace
}  // namespace mllmsim
