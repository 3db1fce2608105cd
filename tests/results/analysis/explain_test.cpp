// What `explain` says of a run made by hand.
#include "results/analysis/explain.hpp"

#include <gtest/gtest.h>

#include <boost/json.hpp>

#include "tests/results/example_run.hpp"

namespace mllmsim {
using namespace analysis;
namespace {

// A path of 10 s: stage 0 has 5 s of forwards and 1 s of transfers, stage 1 has 1 s of forwards and
// 3 s of tp. By kind: forward 6 s, tp 3 s, transfers 1 s.
Explanation example() {
  Explanation e;
  e.run = example_run();
  e.run.critical_path = {{0, PathKind::forward, Seconds{5}},
                         {0, PathKind::pp_transfer, Seconds{1}},
                         {1, PathKind::forward, Seconds{1}},
                         {1, PathKind::tp, Seconds{3}}};
  e.across_stages = 1.25;
  Remedy helps{"recompute off", "recompute=none"};
  helps.run = example_run();
  helps.run->iteration = Seconds{8};
  helps.gain = 0.25;
  Remedy no_use{"better cut", "strategy.name=balanced"};
  no_use.note = "there is one stage";
  e.remedies = {helps, no_use};
  return e;
}

// The words of the first line that begins with `start`, one space between them.
std::string line_of(const std::string& text, const std::string& start) {
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string out;
    for (std::string word; words >> word;) out += (out.empty() ? "" : " ") + word;
    if (out.starts_with(start)) return out;
  }
  return "";
}

TEST(Explain, ThePathIsAddedUpByKindLongestFirst) {
  const std::string text = explanation_text(example());
  EXPECT_EQ(line_of(text, "forward"), "forward 6.000 60.0%");
  EXPECT_EQ(line_of(text, "tensor"), "tensor-parallel communication 3.000 30.0%");
  EXPECT_EQ(line_of(text, "transfer"), "transfer between stages 1.000 10.0%");
  EXPECT_LT(text.find("forward "), text.find("tensor-parallel"));
  EXPECT_LT(text.find("tensor-parallel"), text.find("transfer between"));
}

// Stage 1 is busy for 7 of 10 s.
TEST(Explain, ThePathIsAddedUpByStage) {
  EXPECT_EQ(line_of(explanation_text(example()), "stage 1"),
            "stage 1 4.000 40.0% 70.0% 24 x GPT-7B.block, GPT-7B.head");
}

TEST(Explain, ARemedySaysWhatItGainsOrWhyNot) {
  const std::string text = explanation_text(example());
  EXPECT_EQ(line_of(text, "recompute off +"),
            "recompute off +25.0% 8.000 34.72 2.170 61.0 of 80.0");
  EXPECT_EQ(line_of(text, "recompute off:"), "recompute off: recompute=none");
  EXPECT_EQ(line_of(text, "better cut:"), "better cut: there is one stage");
}

TEST(Explain, ProgramsReadTheSame) {
  const auto json = boost::json::parse(explanation_json(example()));
  const auto& path = json.at("critical_path").as_array();
  EXPECT_EQ(boost::json::serialize(path.at(1)), R"({"kind":"tp","time_s":3,"share":3E-1})");
  EXPECT_EQ(json.at("remedies").at(0).at("gain").as_double(), 0.25);
  EXPECT_EQ(json.at("remedies").at(1).at("note").as_string(), "there is one stage");
}

}  // namespace
}  // namespace mllmsim
