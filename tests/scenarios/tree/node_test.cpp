#include <gtest/gtest.h>

#include "scenarios/tree/node.hpp"
#include "scenarios/tree/toml_parse.hpp"
#include "sim/base/errors.hpp"

namespace mllmsim {
using namespace scenarios;
namespace {

TEST(Node, RemembersWhereItWasWritten) {
  const Node root = parse_toml("a = 1\n[b]\n  c = 'x'\n", "f.toml");
  EXPECT_EQ(root.find("b")->find("c")->position.text(), "f.toml:3:7");
}

TEST(Node, NearestAncestorOfAMissingKey) {
  const Node root = parse_toml("a = [{ b = 1 }]", "f.toml");
  EXPECT_EQ(nearest(root, "a.0.b").as<std::int64_t>(), 1);
  EXPECT_TRUE(nearest(root, "a.0.c").is<Node::Table>());
  EXPECT_TRUE(nearest(root, "a.7.b").is<Node::Array>());
  EXPECT_EQ(&nearest(root, "x.y"), &root);
}

TEST(Node, CanonicalTextIsSortedAndWithoutComments) {
  const Node root = parse_toml("z = 1 # last\n[t]\ny = [1, 2]\nx = 2.0\n[[e]]\na = true\n", "f");
  EXPECT_EQ(to_toml(root), "z = 1\n\n[[e]]\na = true\n\n[t]\nx = 2.0\ny = [1, 2]\n");
}

TEST(Node, CanonicalTextReadsBackAsTheSameTree) {
  const Node root = parse_toml(R"(
    "odd key" = "tab \t quote \" backslash \\ bell \u0007"
    small = 1e-300
    infinite = -inf
    mixed = [1, "a", { b = [{}] }]
    deep.er.est = { x = {} }
    [[list]]
    inner = { a = 1 }
    [[list]]
  )",
                               "f");
  EXPECT_EQ(parse_toml(to_toml(root), "g"), root);
}

std::string problem(const std::string& text) {
  try {
    parse_toml(text, "f.toml");
    return "";
  } catch (const UserError& e) {
    return e.what();
  }
}

TEST(ParseToml, SyntaxErrorsHavePositions) {
  EXPECT_TRUE(problem("a = 1\nb = = 2\n").starts_with("f.toml:2:5: not valid TOML: "))
      << problem("a = 1\nb = = 2\n");
}

TEST(ParseToml, DatesAreRefused) {
  EXPECT_EQ(problem("a = 2024-01-01"), "f.toml:1:5: dates and times have no use here");
}

TEST(ParseToml, DeepKeysDoNotOverflowTheStack) {
  std::string key = "a";
  for (int i = 0; i < 200'000; ++i) key += ".a";
  EXPECT_EQ(problem("\n" + key + " = 1"), "f.toml:2:1: keys are nested too deeply");
}

TEST(ParseValue, IsTomlIfItCanBe) {
  EXPECT_EQ(parse_value("4", {}).as<std::int64_t>(), 4);
  EXPECT_EQ(parse_value("true", {}).as<bool>(), true);
  EXPECT_EQ(parse_value("[1, 2]", {}).as<Node::Array>().size(), 2u);
  EXPECT_EQ(parse_value("400 Gb/s", {}).as<std::string>(), "400 Gb/s");
  EXPECT_EQ(parse_value("1\nb = 2", {}).as<std::string>(), "1\nb = 2");
}

}  // namespace
}  // namespace mllmsim
