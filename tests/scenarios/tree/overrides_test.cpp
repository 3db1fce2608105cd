#include <gtest/gtest.h>

#include "scenarios/tree/merge.hpp"
#include "scenarios/tree/toml_parse.hpp"

namespace mllmsim {
using namespace scenarios;
namespace {

std::string overridden(const std::string& text, const std::vector<std::string>& overrides) {
  Node run = parse_toml(text, "f");
  Problems problems;
  apply_overrides(run, overrides, problems);
  problems.throw_if_any();
  return to_toml(run);
}

std::string problem(const std::string& text, const std::string& override) {
  try {
    overridden(text, {override});
    return "";
  } catch (const UserError& e) {
    return e.what();
  }
}

TEST(Merged, TablesDeeplyAndTheRestReplaced) {
  const Node base = parse_toml("a = 1\nl = [1, 2]\n[t]\nx = 1\ny = 2", "f");
  const Node over = parse_toml("l = [3]\n[t]\ny = 3", "g");
  EXPECT_EQ(to_toml(merged(base, over)), "a = 1\nl = [3]\n\n[t]\nx = 1\ny = 3\n");
}

TEST(Merged, ValuesKeepTheirPositions) {
  const Node base = parse_toml("[t]\nx = 1\ny = 2", "f");
  const Node over = parse_toml("\n\n[t]\ny = 3", "g");
  const Node both = merged(base, over);
  EXPECT_EQ(nearest(both, "t.x").position.text(), "f:2:5");
  EXPECT_EQ(nearest(both, "t.y").position.text(), "g:4:5");
}

TEST(Overrides, SetAndCreate) {
  EXPECT_EQ(overridden("[a]\nb = 1", {"a.b=2", "c.d=x y"}), "\n[a]\nb = 2\n\n[c]\nd = \"x y\"\n");
}

TEST(Overrides, TurnANameIntoATable) {
  EXPECT_EQ(overridden("cluster = 'x'", {"cluster.nodes=4"}),
            "\n[cluster]\nbase = \"x\"\nnodes = 4\n");
  EXPECT_EQ(overridden("recompute = 'full'", {"recompute.llm=none"}),
            "\n[recompute]\nencoder = \"full\"\nllm = \"none\"\n");
}

TEST(Overrides, OfTwoWaysToSayOneThingTheLaterCounts) {
  EXPECT_EQ(overridden("[cluster]\nnodes = 4", {"cluster.gpus=64"}), "\n[cluster]\ngpus = 64\n");
  EXPECT_EQ(overridden("[parallelism]\ngradient_accumulation_steps = 4", {"gbs=64"}),
            "\n[parallelism]\nglobal_batch_size = 64\n");
}

TEST(Overrides, AnotherClusterKeepsTheNodes) {
  EXPECT_EQ(overridden("[cluster]\nbase = 'x'\nnodes = 4", {"cluster=y"}),
            "\n[cluster]\nbase = \"y\"\nnodes = 4\n");
}

TEST(Overrides, OrderDoesNotMatter) {
  const char* run = "cluster = 'x'";
  EXPECT_EQ(overridden(run, {"cluster.nodes=4", "cluster=y"}),
            overridden(run, {"cluster=y", "cluster.nodes=4"}));
}

TEST(Overrides, AnotherStrategyDropsTheOptionsOfTheFirst) {
  const char* run = "[strategy]\nname = 'baseline'\npartition = 'layers'";
  EXPECT_EQ(overridden(run, {"strategy.name=balanced"}), "\n[strategy]\nname = \"balanced\"\n");
  EXPECT_EQ(overridden(run, {"strategy.x=1", "strategy.name=balanced"}),
            "\n[strategy]\nname = \"balanced\"\nx = 1\n");
  EXPECT_EQ(overridden(run, {"strategy.name=baseline"}),
            "\n[strategy]\nname = \"baseline\"\npartition = \"layers\"\n");
}

TEST(Overrides, ListElementsByIndex) {
  EXPECT_EQ(overridden("l = [1, 2]", {"l.1=5"}), "l = [1, 5]\n");
  EXPECT_EQ(problem("l = [1, 2]", "l.2=5"), "command line: l.2=5: l.2: there are only 2 elements");
}

TEST(Overrides, ProblemsNameTheOverride) {
  EXPECT_EQ(problem("", "nodes"),
            "command line: nodes: expected key=value, such as cluster.nodes=4");
  EXPECT_EQ(problem("", "a..b=1"),
            "command line: a..b=1: expected key=value, such as cluster.nodes=4");
  EXPECT_EQ(problem("a = 1", "a.b=2"), "command line: a.b=2: a: is 1, which has no \"b\"");
}

}  // namespace
}  // namespace mllmsim
