// Tables for other programs: CSV, JSON and Markdown.
#include <gtest/gtest.h>

#include <cmath>

#include "results/text/json.hpp"
#include "results/text/text_table.hpp"
#include "sim/tables/csv.hpp"

namespace mllmsim {
using namespace costs;
using namespace results;
using namespace tables;
namespace {

Table small_table() {
  StringColumn names;
  names.push_back("plain");
  names.push_back("a \"quoted\", one");
  return {{{"name", names},
           {"x", std::vector<double>{0.1, std::nan("")}},
           {"n", std::vector<std::int64_t>{-1, 2}},
           {"ok", std::vector<bool>{true, false}}}};
}

TEST(TableFormats, CsvQuotesWhatItMust) {
  EXPECT_EQ(to_csv(small_table()),
            "name,x,n,ok\nplain,0.1,-1,true\n\"a \"\"quoted\"\", one\",nan,2,false\n");
}

TEST(TableFormats, CsvRunsNothingInASpreadsheet) {
  StringColumn cells;
  for (const char* text : {"=1+1", "+cmd", "-x", "@a", "-5", "+0.5", "a=b", "=a,b"})
    cells.push_back(text);
  EXPECT_EQ(to_csv({{{"=k", cells}}}), "'=k\n'=1+1\n'+cmd\n'-x\n'@a\n-5\n+0.5\na=b\n\"'=a,b\"\n");
}

TEST(TableFormats, JsonHasAnObjectARow) {
  EXPECT_EQ(to_json(small_table(), "rows"), R"({
  "rows": [
    {"name": "plain", "x": 0.1, "n": -1, "ok": true},
    {"name": "a \"quoted\", one", "x": null, "n": 2, "ok": false}
  ]
}
)");
}

TEST(TableFormats, MarkdownShowsSignsAsTheyAre) {
  TextTable table({{"name", Align::left}, {"n"}});
  table.add_row({"a|b", "1"});
  table.add_row({"<i>[x](y)\\", "2"});
  EXPECT_EQ(table.markdown(),
            "| name | n |\n| --- | --: |\n| a\\|b | 1 |\n| &lt;i>\\[x\\](y)\\\\ | 2 |\n");
}

}  // namespace
}  // namespace mllmsim
