#include "sim/tables/parquet.hpp"

#include <gtest/gtest.h>

#include "sim/base/errors.hpp"
#include "sim/base/files.hpp"
#include "tests/temporary_directory.hpp"

namespace mllmsim {
using namespace tables;
namespace {

StringColumn strings(std::initializer_list<const char*> values) {
  StringColumn column;
  for (const char* v : values) column.push_back(v);
  return column;
}

Table example_table() {
  return {{{"count", std::vector<std::int64_t>{1, -2, INT64_MAX}},
           {"time_s", std::vector<double>{0.1, 1e300, -0.0}},
           {"fits", std::vector<bool>{true, false, true}},
           {"name", strings({"gemm", "", "gemm"})}}};
}

TEST(StringColumn, HoldsEachDistinctStringOnce) {
  const StringColumn column = strings({"a", "a", "b", "a"});
  EXPECT_EQ(column.dictionary(), (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(column.indices(), (std::vector<std::int32_t>{0, 0, 1, 0}));
  EXPECT_EQ(column[2], "b");
}

TEST(Parquet, GivesBackTableAndMetadata) {
  const TemporaryDirectory dir;
  const Metadata metadata = {{"scenario", "a = 1\nb = \"ü\"\n"}, {"seed", "7"}};
  write_parquet(example_table(), metadata, dir / "t.parquet");
  const ParquetFile file = read_parquet(dir / "t.parquet");
  EXPECT_EQ(file.table, example_table());
  EXPECT_EQ(file.metadata, metadata);
}

TEST(Parquet, KeepsNulls) {
  const TemporaryDirectory dir;
  Table table = example_table();
  for (const auto& [name, column] : Table(table).columns) table.set_null(name, 0);
  for (auto& [name, column] : table.columns)
    std::visit(
        [](auto& values) {
          if constexpr (requires { values[0] = {}; }) values[0] = {};
        },
        column);
  write_parquet(table, {}, dir / "t.parquet");
  const Table read = read_parquet(dir / "t.parquet").table;
  EXPECT_EQ(read.nulls, table.nulls);
  EXPECT_TRUE(read.is_null(table.columns[0].first, 0));
  EXPECT_FALSE(read.is_null(table.columns[0].first, 1));
}

TEST(Parquet, AnEmptyTableKeepsItsColumns) {
  const TemporaryDirectory dir;
  const Table table{{{"count", std::vector<std::int64_t>{}}, {"name", StringColumn{}}}};
  write_parquet(table, {}, dir / "t.parquet");
  EXPECT_EQ(read_parquet(dir / "t.parquet").table, table);
}

// More rows than a row group holds (2^20), so that reading joins two of them.
TEST(Parquet, JoinsRowGroups) {
  const TemporaryDirectory dir;
  std::vector<std::int64_t> numbers((1 << 20) + 3);
  StringColumn names;
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    numbers[i] = static_cast<std::int64_t>(i);
    names.push_back(i % 2 == 0 ? "even" : "odd");
  }
  const Table table{{{"i", numbers}, {"name", names}}};
  write_parquet(table, {}, dir / "t.parquet");
  EXPECT_EQ(read_parquet(dir / "t.parquet").table, table);
}

TEST(Parquet, SameTableSameBytes) {
  const TemporaryDirectory dir;
  write_parquet(example_table(), {{"b", "2"}, {"a", "1"}}, dir / "one.parquet");
  write_parquet(example_table(), {{"a", "1"}, {"b", "2"}}, dir / "two.parquet");
  EXPECT_EQ(contents(dir / "one.parquet"), contents(dir / "two.parquet"));
}

TEST(Parquet, FailureToWriteLeavesNothing) {
  const TemporaryDirectory dir;
  write_file_atomically(dir / "file", "kept");
  EXPECT_THROW(write_parquet(example_table(), {}, dir / "file/t.parquet"), EnvironmentError);
  EXPECT_EQ(dir.entries(), 1U);
}

TEST(Parquet, SaysWhichFileCannotBeRead) {
  const TemporaryDirectory dir;
  write_file_atomically(dir / "t.parquet", "not Parquet at all");
  for (const char* name : {"t.parquet", "missing.parquet"}) try {
      read_parquet(dir / name);
      FAIL() << name;
    } catch (const EnvironmentError& e) {
      EXPECT_NE(std::string(e.what()).find("cannot read " + (dir / name).string()),
                std::string::npos)
          << e.what();
    }
}

TEST(Parquet, ColumnsOfUnequalLengthAreOurBug) {
  const Table table{{{"a", std::vector<double>{1}}, {"b", std::vector<double>{}}}};
  EXPECT_THROW(write_parquet(table, {}, "never-written.parquet"), InternalError);
}

}  // namespace
}  // namespace mllmsim
