// Reading and writing JSON.
#include <gtest/gtest.h>

#include <algorithm>
#include <boost/json.hpp>
#include <functional>
#include <limits>

#include "sim/base/json_reader.hpp"
#include "sim/base/json_writer.hpp"

namespace mllmsim {

enum class Colour : std::uint8_t { red, green };
template <>
struct Names<Colour> {
  static constexpr std::array<std::string_view, 2> list{"red", "green"};
};

namespace {

namespace json = boost::json;

TEST(JsonWriter, NumbersAreShortAndReadBackTheSame) {
  EXPECT_EQ(json_number(4.6), "4.6");
  EXPECT_EQ(json_number(1250), "1250");
  EXPECT_EQ(json_number(0.1 + 0.2), "0.30000000000000004");
  EXPECT_EQ(json_number(1e-9), "1e-09");
  EXPECT_EQ(json_number(2.0 / 3, 3), "0.667");
  EXPECT_EQ(json_number(std::numeric_limits<double>::infinity()), "null");
}

TEST(JsonWriter, TextIsEscaped) { EXPECT_EQ(json_text("a\"b\\\n"), R"("a\"b\\\n")"); }

TEST(JsonWriter, ALine) {
  EXPECT_EQ(line_json({{"a", 4.6}, {"b", {1, nullptr}}, {"c", json::object{}}}),
            R"({"a": 4.6, "b": [1, null], "c": {}})");
}

// What fits into 100 characters stays on a line; what does not is opened, one level at a time.
TEST(JsonWriter, LongValuesAreIndented) {
  const std::string text(80, 'x');
  EXPECT_EQ(pretty_json({{"a", text}, {"b", {1, 2}}}),
            "{\n  \"a\": \"" + text + "\",\n  \"b\": [1, 2]\n}\n");
}

TEST(JsonWriter, LongListsOfNumbersFillLines) {
  json::array list(60, 10);  // 25 of "10, " on a line of 100
  const std::string out = pretty_json(list);
  EXPECT_EQ(std::count(out.begin(), out.end(), '\n'), 5);
  EXPECT_EQ(json::parse(out), json::value(list));
}

std::string problem(const std::function<void()>& act) {
  try {
    act();
  } catch (const UserError& e) {
    return e.what();
  }
  return "none";
}

TEST(JsonReader, TellsWhereTextStopsBeingJson) {
  EXPECT_EQ(problem([] { parse_json("{\n  \"a\": x\n}", "f"); }).find("f:2:8: not valid JSON: "),
            0U);
  EXPECT_EQ(problem([] { parse_json("{", "f", 7); }).find("f:7:2: not valid JSON: "), 0U);
  EXPECT_EQ(problem([] { parse_json("1 2", "f"); }).find("f:1:3: not valid JSON: "), 0U);
}

TEST(JsonReader, AsksByNameAndType) {
  const json::value value =
      parse_json(R"({"n": 3, "x": 0.5, "c": "green", "o": {"k": [1, 2]}})", "");
  JsonObject object(value, "f");
  EXPECT_EQ(object.count("n"), 3);
  EXPECT_EQ(object.number("x"), 0.5);
  EXPECT_EQ(object.choice<Colour>("c"), Colour::green);
  EXPECT_EQ(object.object("o").numbers("k"), (std::vector<double>{1, 2}));
  object.finish();
}

TEST(JsonReader, ProblemsNameTheKey) {
  const json::value value = parse_json(R"({"n": 0, "c": "blue", "o": {"k": "x"}, "z": 1})", "");
  JsonObject object(value, "f");
  EXPECT_EQ(problem([&] { object.number("y"); }), "f: y: missing");
  EXPECT_EQ(problem([&] { object.count("n"); }), "f: n: expected a positive whole number");
  EXPECT_EQ(problem([&] { object.choice<Colour>("c"); }), "f: c: expected \"red\" or \"green\"");
  EXPECT_EQ(problem([&] { object.object("o").flag("k"); }), "f: o.k: expected true or false");
  EXPECT_EQ(problem([&] { object.finish(); }), "f: z: unknown key");
}

}  // namespace
}  // namespace mllmsim
