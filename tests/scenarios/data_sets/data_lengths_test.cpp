// Lengths files: every format gives the same samples, and says where it is wrong.
#include <gtest/gtest.h>

#include "scenarios/data_sets/data_lengths.hpp"
#include "scenarios/parquet/parquet_lengths.hpp"
#include "sim/base/errors.hpp"
#include "sim/tables/parquet.hpp"
#include "tests/scenarios/support.hpp"

namespace mllmsim::test {
using namespace data;
using namespace scenarios;
using namespace tables;
namespace {

const std::vector<Sample> kTwo = {{5, 1359}, {1, 307}};

std::string problems_of_file(const std::filesystem::path& file) {
  try {
    read_lengths(file);
  } catch (const UserError& e) {
    std::string text = e.what();
    const std::string dir = file.parent_path().string() + "/";
    for (std::size_t at; (at = text.find(dir)) != std::string::npos;) text.erase(at, dir.size());
    return text;
  }
  return "";
}

TEST(Lengths, FromJson) {
  const Directory dir;
  const auto file = dir.write("a.json", R"([{"vit_num": 5, "token_num": 1359, "image_flags": 5},
    {"token_num": 307, "id": "x", "boxes": [1, {"vit_num": 9}], "vit_num": 1}])");
  const DataSet data = read_lengths(file);
  EXPECT_EQ(data.samples, kTwo);
  EXPECT_EQ(data.sets, (std::vector<SampleSet>{{"a", 0, 2}}));
}

TEST(Lengths, FromCsv) {
  const Directory dir;
  EXPECT_EQ(
      read_lengths(dir.write("a.csv", "id,token_num,vit_num\r\nx,1359,5\r\ny, 307 ,1\n\n")).samples,
      kTwo);
}

TEST(Lengths, FromParquet) {
  const Directory dir;
  const Table table{{{"vit_num", std::vector<std::int64_t>{5, 1}},
                     {"token_num", std::vector<std::int64_t>{1359, 307}}}};
  write_parquet(table, {}, dir.path() / "a.parquet");
  register_parquet_lengths();
  EXPECT_EQ(read_lengths(dir.path() / "a.parquet").samples, kTwo);
}

TEST(Lengths, FromAMetaFileThatListsSeveral) {
  const Directory dir;
  dir.write("a.json", R"([{"vit_num": 5, "token_num": 1359}])");
  dir.write("b.csv", "vit_num,token_num\n1,307\n");
  const auto meta =
      dir.write("meta.json", R"({"first": {"token_lengths": "./a.json"}, "second": "b.csv"})");
  const DataSet data = read_lengths(meta);
  EXPECT_EQ(data.samples, kTwo);
  EXPECT_EQ(data.sets, (std::vector<SampleSet>{{"first", 0, 1}, {"second", 1, 2}}));
}

TEST(Lengths, SetsOfAMetaFileAreMixedWithWeights) {
  const Directory dir;
  dir.write("a.csv", "vit_num,token_num\n1,301\n1,302\n1,303\n1,304\n");
  const auto tokens = [&](const char* times) {
    std::vector<std::int32_t> found;
    const std::string text = R"({"a": {"token_lengths": "a.csv", "repeat_time": )";
    for (const Sample& s : read_lengths(dir.write("meta.json", text + times + "}}")).samples)
      found.push_back(s.tokens);
    return found;
  };
  EXPECT_EQ(tokens("0.5"), (std::vector<std::int32_t>{301, 303}));
  EXPECT_EQ(tokens("2"), (std::vector<std::int32_t>{301, 302, 303, 304, 301, 302, 303, 304}));
  EXPECT_EQ(tokens("1.5").size(), 6u);
  EXPECT_EQ(problems_of_file(
                dir.write("meta.json", R"({"a": {"token_lengths": "a.csv", "repeat_time": 0}})")),
            "meta.json: a.repeat_time: expected a number above 0, at most 1000");
}

TEST(Lengths, TellsAllWrongRecordsOfAJsonFile) {
  const Directory dir;
  const auto file =
      dir.write("a.json", R"([{"vit_num": 1, "token_num": 307}, {"vit_num": "5", "token_num": 9},
    {"token_num": 307}, {"vit_num": 1, "token_num": 0}, 7, {"vit_num": 1.5, "token_num": 3}])");
  EXPECT_EQ(problems_of_file(file),
            "a.json: record 2: vit_num: expected a whole number, found a string\n"
            "a.json: record 3: vit_num: missing\n"
            "a.json: record 4: token_num: expected a whole number from 1 to 100000000, found 0\n"
            "a.json: record 5: expected an object, found a number\n"
            "a.json: record 6: vit_num: expected a whole number, found 1.5");
}

TEST(Lengths, TellsTheLineOfACsvFile) {
  const Directory dir;
  EXPECT_EQ(problems_of_file(dir.write("a.csv", "vit_num,token_num\n1,307\n5\n-1,4\n")),
            "a.csv: line 3: token_num: expected a whole number, found \"\"\n"
            "a.csv: line 4: vit_num: expected a whole number from 0 to 100000000, found -1");
  EXPECT_EQ(problems_of_file(dir.write("b.csv", "tiles,token_num\n1,2\n")),
            "b.csv: line 1: vit_num: no such column");
}

TEST(Lengths, TellsWhereTextStopsBeingJson) {
  const Directory dir;
  EXPECT_EQ(problems_of_file(dir.write("a.json", "[{\"vit_num\": 1,\n  \"token_num\": }]")),
            "a.json:2:16: not valid JSON: syntax error");
  EXPECT_NE(problems_of_file(dir.write("b.json", "[{\"vit_num\": 1")), "");
  EXPECT_NE(problems_of_file(dir.write("c.json", "[] []")), "");
  EXPECT_NE(problems_of_file(dir.write("d.json", "3")), "");
  EXPECT_EQ(problems_of_file(dir.write("e.json", "[]")), "e.json: has no samples");
}

TEST(Lengths, StopsListingAfterTen) {
  const Directory dir;
  std::string text = "vit_num,token_num\n";
  for (int i = 0; i < 25; ++i) text += "x,1\n";
  EXPECT_NE(problems_of_file(dir.write("a.csv", text)).find("15 more problems"), std::string::npos);
}

TEST(Lengths, TellsOfAllFilesOfAMetaFile) {
  const Directory dir;
  dir.write("a.json", R"([{"vit_num": 1}])");
  EXPECT_EQ(
      problems_of_file(dir.write("meta.json", R"({"a": "a.json", "b": "none.json", "c": 3})")),
      "a.json: record 1: token_num: missing\n"
      "none.json: no such file\n"
      "meta.json: c: expected {\"token_lengths\": \"FILE\"} or \"FILE\"");
}

}  // namespace
}  // namespace mllmsim::test
