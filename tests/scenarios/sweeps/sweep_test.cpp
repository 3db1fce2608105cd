// What a sweep varies, from tables and from the command line.
#include "scenarios/sweeps/sweep.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "scenarios/sweeps/sweep_values.hpp"
#include "scenarios/tree/toml_parse.hpp"
#include "sim/base/errors.hpp"
#include "strategies/registry/registry.hpp"
#include "tests/scenarios/support.hpp"

namespace mllmsim::test {
using namespace data;
using namespace scenarios;
namespace {

std::string list(const std::string& text) {
  std::string out;
  for (const Node& n : listed_values(text, {})) out += (out.empty() ? "" : " ") + to_inline_toml(n);
  return out;
}

// All points, a line each.
std::string points(const std::string& toml, const std::vector<std::string>& vary = {},
                   const std::optional<std::string>& strategies = std::nullopt) {
  const Sweep sweep = read_sweep(parse_toml(toml, "run.toml"), vary, strategies);
  std::string out;
  for (std::size_t p = 0; p < sweep.points(); ++p)
    out += fmt::format("{}\n", fmt::join(sweep.overrides(p), " "));
  return out;
}

std::string problem(const std::string& toml, const std::vector<std::string>& vary = {},
                    const std::optional<std::string>& strategies = std::nullopt) {
  try {
    return points(toml, vary, strategies);
  } catch (const UserError& e) {
    return e.what();
  }
}

TEST(SweepValues, ListsAndRanges) {
  EXPECT_EQ(list("2,4, 8"), "2 4 8");
  EXPECT_EQ(list("4..64*2"), "4 8 16 32 64");
  EXPECT_EQ(list("1..4"), "1 2 3 4");
  EXPECT_EQ(list("2..9+3"), "2 5 8");
  EXPECT_EQ(list("0.5..2*2"), "0.5 1.0 2.0");
  EXPECT_EQ(list("0.1..0.3+0.1"), "0.1 0.2 0.30000000000000004");
  EXPECT_EQ(list("1,10..1000*10"), "1 10 100 1000");
}

TEST(SweepValues, QuantitiesKeepTheirUnit) {
  EXPECT_EQ(list("100..400*2 Gb/s"), R"("100 Gb/s" "200 Gb/s" "400 Gb/s")");
}

TEST(SweepValues, CommasInBracketsAndQuotesDoNotSeparate) {
  EXPECT_EQ(list("[1,2],[3,4]"), "[1, 2] [3, 4]");
  EXPECT_EQ(list(R"("a,b",c)"), R"("a,b" "c")");
  EXPECT_EQ(list("../mine.json,full"), R"("../mine.json" "full")");
}

TEST(SweepValues, RangesThatCannotBe) {
  for (const char* text : {"8..4", "1..4*1", "0..4*2", "1..4+0", "1..1e12", "1,,2"})
    EXPECT_THROW(listed_values(text, {}), UserError) << text;
}

// 2 x 2 points: the grid's keys by name, the last fastest, whatever the order they are written in.
TEST(Sweep, IsEveryCombinationInTheOrderOfKeys) {
  const std::string expected = "a.x=1 b.y=3\na.x=1 b.y=4\na.x=2 b.y=3\na.x=2 b.y=4\n";
  EXPECT_EQ(points("", {"a.x=1,2", "b.y=3,4"}), expected);
  EXPECT_EQ(points("", {"b.y=3,4", "a.x=1,2"}), expected);
  EXPECT_EQ(points("[sweep.vary]\nb.y = [3, 4]\n\"a.x\" = \"1..2\"\n"), expected);
}

TEST(Sweep, TheCommandLineComesOverTheTable) {
  EXPECT_EQ(points("[sweep.vary]\na.x = [1, 2]\n", {"a.x=7"}), "a.x=7\n");
}

TEST(Sweep, PointsVaryKeysTogether) {
  EXPECT_EQ(
      points("[[sweep.points]]\na.x = 1\nb.y = 10\n[[sweep.points]]\na.x = 2\nb.y = 20\n"
             "[sweep.vary]\nc = [true, false]\n"),
      "a.x=1 b.y=10 c=true\na.x=1 b.y=10 c=false\na.x=2 b.y=20 c=true\na.x=2 b.y=20 c=false\n");
}

TEST(Sweep, AllStrategiesAreThoseRegistered) {
  std::string expected;
  for (const Strategy& s : strategies()) expected += "strategy.name=\"" + s.name + "\"\n";
  EXPECT_EQ(points("", {}, "all"), expected);
  EXPECT_EQ(points("sweep.strategies = \"all\"\n"), expected);
  EXPECT_EQ(points("", {}, "balanced,baseline"),
            "strategy.name=\"balanced\"\nstrategy.name=\"baseline\"\n");
}

TEST(Sweep, AValueWrittenTwiceIsOneValue) {
  EXPECT_EQ(points("", {"a.x=1,2,1"}), "a.x=1\na.x=2\n");
}

// Its description, read again, is the same sweep with the same numbers of points.
TEST(Sweep, CanBeReadFromItsDescription) {
  const std::string toml =
      "[[sweep.points]]\na.x = 1\nz.y = 10\n[[sweep.points]]\na.x = 2\nz.y = 20\n"
      "[sweep.vary]\nm.n = \"1..3\"\nt.u = [\"a\", \"b\"]\n[sweep]\nstrategies = \"all\"\n";
  Node run;
  run.as<Node::Table>()["sweep"] = read_sweep(parse_toml(toml, ""), {}, {}).description();
  EXPECT_EQ(points(to_toml(run)), points(toml));
}

TEST(Sweep, SaysWhatIsWrong) {
  EXPECT_NE(problem("").find("nothing varies"), std::string::npos);
  EXPECT_NE(problem("", {"cluster.nodes"}).find("key=values"), std::string::npos);
  EXPECT_NE(problem("", {"a=1", "a=2"}).find("twice"), std::string::npos);
  EXPECT_NE(problem("", {}, "balancd").find("did you mean \"balanced\""), std::string::npos);
  EXPECT_NE(problem("[sweep]\nvari = 1\n").find("run.toml:2"), std::string::npos);
  EXPECT_NE(problem("[[sweep.points]]\na = 1\nb = 2\n[[sweep.points]]\na = 2\n").find("same keys"),
            std::string::npos);
  EXPECT_NE(problem("", {"a=1..1e5", "b=1..1e5"}).find("10000000"), std::string::npos);
}

TEST(Sweep, ARunIgnoresItsSweep) {
  const std::string with = std::string(kSmallRun) + "\n[sweep.vary]\ncluster.nodes = [1, 2]\n";
  EXPECT_EQ(read_text_scenario(with).hash, read_text_scenario(kSmallRun).hash);
}

}  // namespace
}  // namespace mllmsim::test
