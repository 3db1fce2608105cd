#include "sim/base/csv.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "sim/base/errors.hpp"

namespace mllmsim {
namespace {

// Every cell as "line:column=text", records between bars; or the problem.
std::string read(std::string_view text) {
  std::string out;
  try {
    CsvReader reader(text, "t.csv");
    for (std::vector<CsvField> record; reader.next(record); out += "|")
      for (const CsvField& f : record)
        out += fmt::format("{}{}:{}={}", &f == &record[0] ? "" : " ", f.line, f.column, f.text);
  } catch (const UserError& e) {
    return e.what();
  }
  return out;
}

TEST(Csv, CellsKnowWhereTheyStand) { EXPECT_EQ(read("a,bc\n1,2\n"), "1:1=a 1:3=bc|2:1=1 2:3=2|"); }

TEST(Csv, QuotedCellsHoldCommasQuotesAndLines) {
  EXPECT_EQ(read("\"a, b\",\"say \"\"x\"\"\"\n"), "1:1=a, b 1:8=say \"x\"|");
  EXPECT_EQ(read("\"a\nb\",c\nd,e"), "1:1=a\nb 2:4=c|3:1=d 3:3=e|");
}

TEST(Csv, BlanksAroundCellsBlankLinesAndCarriageReturnsDoNotCount) {
  EXPECT_EQ(read(" a , \" b \" \r\n\r\n \n,\r\n"), "1:1=a 1:5= b |4:1= 4:2=|");
}

TEST(Csv, AByteOrderMarkIsNoText) {
  EXPECT_EQ(read("\xEF\xBB\xBF"
                 "a"),
            "1:1=a|");
}

TEST(Csv, AnOpenQuoteIsAProblemButNotInAComment) {
  EXPECT_EQ(read("a,b\n1,\"2\n3,4\n"), "t.csv:2:3: the quote is not closed");
  EXPECT_EQ(read("\"a\"b\n"), "t.csv:1:1: expected a comma behind the closing quote");
  EXPECT_EQ(read("# it's, \"open\na\n"), "1:1=# it's 1:8=open|2:1=a|");
}

TEST(Csv, KeepsWhatIsWritten) {
  CsvReader reader("# one, two\r\na,b", "");
  std::vector<CsvField> record;
  ASSERT_TRUE(reader.next(record));
  EXPECT_EQ(reader.written(), "# one, two");
}

TEST(Csv, WritesWhatItReads) {
  for (const std::string text : {"plain", "a,b", "\"", " blank ", "two\nlines", ""}) {
    const std::string line = csv_field(text) + ",end";
    CsvReader reader(line, "");
    std::vector<CsvField> record;
    ASSERT_TRUE(reader.next(record));
    EXPECT_EQ(record.at(0).text, text);
  }
  EXPECT_EQ(csv_field("plain"), "plain");
}

}  // namespace
}  // namespace mllmsim
