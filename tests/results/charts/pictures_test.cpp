// Pictures of a step as values: what is drawn where, before any backend sees it.
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <set>

#include "results/charts/lanes.hpp"
#include "results/charts/span_look.hpp"
#include "results/charts/thin.hpp"
#include "results/charts/timeline_chart.hpp"
#include "results/plot/layout.hpp"
#include "results/text/words.hpp"
#include "sim/base/errors.hpp"

namespace mllmsim {
using namespace charts;
using namespace costs;
using namespace plot;
using namespace results;
namespace {

constexpr std::int64_t kSecond = 1'000'000'000;

SpanRow span(int replica, int stage, SpanKind kind, const char* name, double from, double to,
             int micro_batch = -1, StreamKind stream = StreamKind::compute) {
  SpanRow s;
  s.replica = replica;
  s.stage = stage;
  s.stream = stream;
  s.kind = kind;
  s.name = name;
  s.micro_batch = micro_batch;
  s.start = to_time(Seconds{from});
  s.end = to_time(Seconds{to});
  return s;
}

SpanRow idle(int replica, int stage, BubbleKind kind, double from, double to) {
  SpanRow s = span(replica, stage, SpanKind::bubble, "", from, to);
  s.bubble = kind;
  return s;
}

// Two stages, tp 2, dp 4 of which one is simulated; a step of four seconds:
//   stage 0   F0 F0 .. B0
//   stage 1   .. F0 B0 ..
RunResult two_stages() {
  RunResult run;
  run.name = "two";
  run.strategy = "baseline";
  run.tp = 2, run.pp = 2, run.dp = 4, run.gpus = 16;
  run.iteration = Seconds{4};
  run.gpu_memory = Bytes{80LL << 30};
  run.spans = {span(0, 0, SpanKind::forward, "encoder", 0, 2, 0),
               idle(0, 0, BubbleKind::pp_other, 2, 3),
               span(0, 0, SpanKind::backward, "encoder", 3, 4, 0),
               idle(0, 1, BubbleKind::pp_warmup, 0, 1),
               span(0, 1, SpanKind::forward, "llm", 1, 2, 0),
               span(0, 1, SpanKind::backward, "llm", 2, 3, 0),
               idle(0, 1, BubbleKind::pp_cooldown, 3, 4),
               span(0, 1, SpanKind::pp_send, "gradients", 3, 3.5, 0, StreamKind::pp_send_prev)};
  run.steps = {{0, 0, Seconds{4}, 1, 4, 100, 8, 0.375}};
  run.memory = {{0, 0, 0, Time{0}, Bytes{1LL << 30}},
                {0, 0, 0, Time{2 * kSecond}, Bytes{3LL << 30}}};
  return run;
}

const Boxes* group(const Panel& panel, const std::string& name) {
  for (const Boxes& b : panel.boxes)
    if (b.name == name && !b.boxes.empty()) return &b;
  return nullptr;
}

// --- looks ---

const std::string& look(SpanKind kind, const char* name) {
  return span_looks()[look_of(span(0, 0, kind, name, 0, 1))].name;
}

TEST(SpanLooks, EncoderAndLlmDiffer) {
  EXPECT_EQ(look(SpanKind::forward, "encoder"), "forward, encoder");
  EXPECT_EQ(look(SpanKind::forward, "encoder + llm"), "forward, encoder + LLM");
  EXPECT_EQ(look(SpanKind::backward, "encoder qkv"), "backward, encoder");
  EXPECT_EQ(look(SpanKind::recompute, "llm"), "recompute, LLM");
  EXPECT_EQ(look(SpanKind::backward, "qkv"), "backward");
}

// Sends and receives share a look, and so do the two collectives of dp.
TEST(SpanLooks, EveryKindOfSpanHasOne) {
  std::set<std::string> names;
  for (std::size_t k = 0; k < static_cast<std::size_t>(SpanKind::bubble); ++k)
    names.insert(look(static_cast<SpanKind>(k), ""));
  EXPECT_EQ(names.size(), static_cast<std::size_t>(SpanKind::bubble) - 2);
}

TEST(SpanLooks, NoTwoKindsOfWorkShareAColour) {
  std::set<Colour> seen;
  for (const SpanLook& l : span_looks())
    EXPECT_TRUE(l.bubble || seen.insert(l.colour).second) << l.name;
}

// WCAG 2: (lighter + 0.05) / (darker + 0.05) of relative luminances.
double luminance(Colour colour) {
  double out = 0;
  for (const auto& [shift, weight] : {std::pair{16, 0.2126}, {8, 0.7152}, {0, 0.0722}}) {
    const double c = static_cast<double>((colour >> shift) & 0xff) / 255;
    out += weight * (c <= 0.03928 ? c / 12.92 : std::pow((c + 0.055) / 1.055, 2.4));
  }
  return out;
}
double contrast(Colour a, Colour b) {
  const double x = luminance(a), y = luminance(b);
  return (std::max(x, y) + 0.05) / (std::min(x, y) + 0.05);
}

TEST(SpanLooks, HatchesStandOutFromLightAndDarkPages) {
  for (const SpanLook& l : span_looks())
    if (l.bubble) {
      EXPECT_NE(l.fill, Fill::solid) << l.name;
      EXPECT_GE(contrast(l.colour, 0xffffff), 3) << l.name;
      EXPECT_GE(contrast(l.colour, 0x161a1f), 3) << l.name;
    }
}

TEST(SpanLooks, EveryKindOfBubbleHasItsOwn) {
  for (std::size_t k = 0; k < kBubbleKinds; ++k) {
    const auto kind = static_cast<BubbleKind>(k);
    const SpanLook& found = span_looks()[look_of(idle(0, 0, kind, 0, 1))];
    EXPECT_EQ(found.name, results::words(kind));
    EXPECT_TRUE(found.bubble);
  }
}

// Bubbles are told apart by colour and hatching alone, or by colour where they stand alone.
TEST(SpanLooks, NoTwoBubblesLookAlike) {
  std::set<std::pair<Colour, Fill>> seen;
  std::set<Colour> alone;
  for (const SpanLook& l : span_looks()) {
    EXPECT_TRUE(!l.bubble || seen.emplace(l.colour, l.fill).second) << l.name;
    EXPECT_TRUE(!l.bubble || alone.insert(l.alone).second) << l.name;
  }
}

TEST(SpanLooks, EveryStreamIsOnTheStripOfItsDimension) {
  constexpr std::array<std::string_view, kStrips> kBegin{"compute", "tp", "pp", "dp", "encoder"};
  for (std::uint32_t s = 0; s < kStreamKinds; ++s) {
    const auto kind = static_cast<StreamKind>(s);
    EXPECT_TRUE(name_of(kind).starts_with(kBegin[static_cast<std::size_t>(strip_of(kind))]))
        << name_of(kind);
  }
}

// --- thinning ---

TEST(Thinned, WideSpansStayAsTheyAre) {
  const std::vector<Stretch> spans{{Time{0}, Time{10}, 1, 7}, {Time{10}, Time{30}, 2, 8}};
  EXPECT_EQ(thinned(spans, Time{10}), spans);
}

// Cells of 10 ns: the first holds 3 + 3 of look 1 and 4 of look 2, the second only look 1.
TEST(Thinned, ACellLooksLikeWhatFillsMostOfIt) {
  const std::vector<Stretch> spans{{Time{0}, Time{3}, 1},
                                   {Time{3}, Time{7}, 2},
                                   {Time{7}, Time{10}, 1},
                                   {Time{10}, Time{13}, 1},
                                   {Time{40}, Time{42}, 2}};
  const std::vector<Stretch> expected{{Time{0}, Time{20}, 1, -1, true},
                                      {Time{40}, Time{50}, 2, -1, true}};
  EXPECT_EQ(thinned(spans, Time{10}), expected);
}

// --- what is shown ---

TEST(View, OneReplicaStandsForAllItsRanks) {
  const RunResult run = two_stages();  // ranks 0..7 are stage 0, 8..15 stage 1
  for (const auto& [ranks, stage] : {std::pair{"0,5", 0}, {"15", 1}}) {
    const View view = view_of(run, {{}, parse_ranks(ranks), {}});
    ASSERT_EQ(view.lanes.size(), 1u) << ranks;
    EXPECT_EQ(view.lanes[0].stage, stage) << ranks;
  }
  EXPECT_EQ(view_of(run, {{}, parse_ranks("7-8"), {}}).lanes.size(), 2u);
}

TEST(View, ARankOfItsOwnReplica) {
  RunResult run = two_stages();
  run.spans.push_back(span(1, 0, SpanKind::forward, "llm", 0, 1));
  const View view = view_of(run, {{}, parse_ranks("2-3"), {}});  // tp 2: replica 1, stage 0
  ASSERT_EQ(view.lanes.size(), 1u);
  EXPECT_EQ(view.lanes[0].replica, 1);
}

// pp before dp: tp 2 and pp 2 make ranks 0..3 replica 0, 4..7 replica 1.
TEST(View, RanksOfAPipelineThatFillsNodes) {
  RunResult run = two_stages();
  run.scenario_text = "[parallelism]\nuse_tp_pp_dp_mapping = true\n";
  run.spans.push_back(span(1, 0, SpanKind::forward, "llm", 0, 1));
  const View view = view_of(run, {{}, parse_ranks("4"), {}});
  ASSERT_EQ(view.lanes.size(), 1u);
  EXPECT_EQ(view.lanes[0].replica, 1);
  EXPECT_EQ(view.lanes[0].first_rank, 4);
}

TEST(View, ManyReplicasAreLeftOutUnlessAskedFor) {
  RunResult run = two_stages();
  run.dp = 20, run.gpus = 80;
  for (int r = 1; r < 20; ++r) run.spans.push_back(span(r, 0, SpanKind::forward, "llm", 0, 1));
  EXPECT_EQ(view_of(run, {}).lanes.size(), 2u);
  EXPECT_EQ(view_of(run, {}).left_out, 19u);
  EXPECT_EQ(view_of(run, {{}, {{0, 79}}, {}}).lanes.size(), 21u);
}

std::string complaint(const RunResult& run, const Choice& choice) {
  try {
    view_of(run, choice);
  } catch (const UserError& e) {
    return e.what();
  }
  return "";
}

TEST(View, MistakesSayWhatExists) {
  const RunResult run = two_stages();
  EXPECT_NE(complaint(run, {7, {}, {}}).find("there is 0"), std::string::npos);
  EXPECT_NE(complaint(run, {{}, {{16, 16}}, {}}).find("0-15"), std::string::npos);
  EXPECT_NE(complaint(run, {{}, {}, {{Seconds{5}, Seconds{6}}}}).find("ends at 4 s"),
            std::string::npos);
}

TEST(View, RanksAndZoomAsWritten) {
  using Ranks = std::vector<std::pair<std::int64_t, std::int64_t>>;
  EXPECT_EQ(parse_ranks("0,3-5"), (Ranks{{0, 0}, {3, 5}}));
  EXPECT_EQ(parse_zoom("0.5:1.2"), std::pair(Seconds{0.5}, Seconds{1.2}));
  for (const char* text : {"", "a", "1,", "3-1", "-1", "1-", "1 2"})
    EXPECT_THROW(parse_ranks(text), UserError) << text;
  for (const char* text : {"", "1", "1:", "2:1", "-1:2", "1:nan", "0:inf"})
    EXPECT_THROW(parse_zoom(text), UserError) << text;
}

// --- the timeline ---

TEST(TimelineChart, ALaneADeviceFromTopToBottom) {
  const Chart chart = timeline_chart(std::vector{two_stages()}, {});
  ASSERT_EQ(chart.panel().y_ticks.size(), 2u);
  EXPECT_EQ(chart.panel().y_ticks[0].text, "stage 0");
  EXPECT_GT(chart.panel().y_ticks[0].at, chart.panel().y_ticks[1].at);
  EXPECT_EQ(chart.x_range, (Range{0, 4}));
  EXPECT_EQ(chart.x_label, "time (s)");
}

TEST(TimelineChart, SpansAreWhereTheyRan) {
  const Chart chart = timeline_chart(std::vector{two_stages()}, {});
  const Boxes* forward = group(chart.panel(), "forward, LLM");
  ASSERT_TRUE(forward);
  EXPECT_EQ(forward->boxes[0].x0, 1);
  EXPECT_EQ(forward->boxes[0].x1, 2);
  const Boxes* send =
      group(chart.panel(), "transfer between stages");  // below the compute of its lane
  ASSERT_TRUE(send);
  EXPECT_LT(send->boxes[0].y1, forward->boxes[0].y0);
  EXPECT_GT(send->boxes[0].y0, -2);
}

TEST(TimelineChart, MicroBatchesAreNumberedWhereTheyFit) {
  EXPECT_EQ(timeline_chart(std::vector{two_stages()}, {}).panel().texts.size(), 4u);
  RunResult run = two_stages();
  run.spans.push_back(
      span(0, 0, SpanKind::optimizer, "optimizer", 4, 4000));  // passes become slivers
  EXPECT_EQ(timeline_chart(std::vector{run}, {}).panel().texts.size(), 0u);
}

TEST(TimelineChart, ZoomCutsAtItsEdges) {
  const Chart chart =
      timeline_chart(std::vector{two_stages()}, {{}, {}, {{Seconds{0.5}, Seconds{1.2}}}});
  EXPECT_EQ(chart.x_range, (Range{500, 1200}));
  EXPECT_EQ(chart.x_label, "time (ms)");
  const Boxes* forward = group(chart.panel(), "forward, encoder");
  ASSERT_TRUE(forward);
  EXPECT_EQ(forward->boxes[0].x0, 500);
  EXPECT_EQ(forward->boxes[0].x1, 1200);
  EXPECT_FALSE(group(chart.panel(), "backward, LLM"));
}

TEST(TimelineChart, TwoRunsShareTheAxisAndTheLegend) {
  RunResult slow = two_stages();
  slow.spans.push_back(span(0, 0, SpanKind::optimizer, "optimizer", 4, 8));
  const Chart chart = timeline_chart(std::vector{two_stages(), slow}, {});
  ASSERT_EQ(chart.panels.size(), 2u);
  EXPECT_EQ(chart.x_range, (Range{0, 8}));
  const std::vector<Placed> placed = layout(chart);
  ASSERT_EQ(placed.size(), 3u);
  EXPECT_FALSE(placed[2].axes);
  EXPECT_EQ(placed[2].texts.size(), 9u);  // 4 passes, optimizer, pp, 3 bubbles: each once
  EXPECT_EQ(placed[0].left, placed[1].left);
  EXPECT_GT(placed[0].bottom, placed[1].top);
}

// A quarter of a million kernels on one lane: at most one box for each half pixel.
TEST(TimelineChart, KernelsBelowAPixelStayFew) {
  RunResult run = two_stages();
  run.spans.clear();
  for (int i = 0; i < 250'000; ++i)
    run.spans.push_back(
        span(0, 0, i % 2 ? SpanKind::forward : SpanKind::backward, "k", i * 1e-5, (i + 1) * 1e-5));
  std::size_t boxes = 0;
  const Chart chart = timeline_chart(std::vector{run}, {});
  for (const Boxes& b : chart.panel().boxes) boxes += b.boxes.size();
  EXPECT_LE(boxes, 2400u);
  EXPECT_NE(chart.x_label.find("merged"), std::string::npos);
}

// --- bubbles and memory ---

TEST(BubblesChart, StacksEveryKind) {
  RunResult run = two_stages();
  StageRow stage;
  stage.bubbles[static_cast<std::size_t>(BubbleKind::pp_warmup)] = Seconds{1};
  stage.bubbles[static_cast<std::size_t>(BubbleKind::tp)] = Seconds{0.5};
  run.stages = {stage};
  const Chart chart = bubbles_chart(std::vector{run});
  const Boxes* tp = group(chart.panel(), "waiting for tensor-parallel ranks");
  ASSERT_TRUE(tp);
  EXPECT_EQ(tp->boxes[0], (Box{-0.4, 0.4, 1, 1.5}));
  EXPECT_EQ(chart.panel().texts[0].text, "38 %");  // 1.5 of 4 s
}

TEST(MemoryChart, StepsUpToTheEndUnderTheLimit) {
  const Chart chart = memory_chart(std::vector{two_stages()}, {});
  ASSERT_EQ(chart.panel().series.size(), 2u);
  EXPECT_EQ(chart.panel().series[0].x, (std::vector<double>{0, 2, 2, 4}));
  EXPECT_EQ(chart.panel().series[0].y, (std::vector<double>{1, 1, 3, 3}));
  EXPECT_EQ(chart.panel().series[1].y, (std::vector<double>{80, 80}));
}

// Of 3 GiB from 2 s on, 1 are copies of gradients: a layer of their own, from 2 to 3.
TEST(MemoryChart, CopiesOfGradientsAreOnTop) {
  RunResult run = two_stages();
  run.memory[1].copies = Bytes{1LL << 30};
  const Chart chart = memory_chart(std::vector{run}, {});
  ASSERT_EQ(chart.panel().series.size(), 3u);
  EXPECT_EQ(chart.panel().series[0].y, (std::vector<double>{1, 1, 2, 2}));
  EXPECT_EQ(chart.panel().series[1].name, "copies of gradients");
  EXPECT_EQ(chart.panel().series[1].y, (std::vector<double>{1, 1, 3, 3}));
  EXPECT_EQ(chart.panel().series[1].y_low, (std::vector<double>{1, 1, 2, 2}));
}

// 0.5 GiB of weights below what changes.
TEST(MemoryChart, AStageIsAStackOfItsOwn) {
  RunResult run = two_stages();
  run.memory.push_back({0, 0, 1, Time{0}, Bytes{1LL << 30}});
  StageRow stage;
  stage.held[Holding::weights] = Bytes{1LL << 29};
  run.stages = {stage};
  const Chart chart = memory_chart(std::vector{run}, {});
  ASSERT_EQ(chart.panels.size(), 2u);
  EXPECT_EQ(chart.columns, 2u);
  EXPECT_EQ(chart.panels[0].series[0].name, "weights");
  EXPECT_EQ(chart.panels[0].series[0].y, (std::vector<double>{0.5, 0.5}));
  EXPECT_EQ(chart.panels[0].series[1].y_low, (std::vector<double>{0.5, 0.5, 0.5, 0.5}));
  EXPECT_EQ(chart.panels[1].title, "stage 1");
}

}  // namespace
}  // namespace mllmsim
