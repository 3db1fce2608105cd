#include "scenarios/files/portable.hpp"

#include <gtest/gtest.h>

#include "scenarios/tree/toml_parse.hpp"
#include "sim/base/data_directory.hpp"

namespace mllmsim::scenarios {
namespace {

TEST(PortableName, SaysNothingOfTheMachine) {
  EXPECT_EQ(portable_name("mine/a.json"), "mine/a.json");
  EXPECT_EQ(portable_name("a100-sxm4-80g"), "a100-sxm4-80g");
  EXPECT_EQ(portable_name("/home/me/a.json"), "a.json");
  EXPECT_EQ(portable_name((data_directory() / "scenarios/runs/a.toml").string()),
            "scenarios/runs/a.toml");
}

TEST(PortableName, TextsForPeopleStay) {
  const Node tree = parse_toml(
      "description = \"/ is a slash\"\ncalibration = \"/x/a.json\"\n[data]\nset = \"/y/b.csv\"\n",
      "a.toml");
  EXPECT_EQ(portable_text(tree),
            "calibration = \"a.json\"\ndescription = \"/ is a slash\"\n\n[data]\nset = "
            "\"b.csv\"\n");
}

TEST(PortableMessage, NamesFilesWithoutTheirDirectories) {
  EXPECT_EQ(portable_message("data.set: /tmp/my data/x.csv: no such file; no such file: /a/b.json"),
            "data.set: x.csv: no such file; no such file: b.json");
  EXPECT_EQ(portable_message("\"/x/a.toml\", '/b'"), "\"a.toml\", 'b'");
  EXPECT_EQ(portable_message("1 Gb/s / 2, mine/a.json"), "1 Gb/s / 2, mine/a.json");
}

}  // namespace
}  // namespace mllmsim::scenarios
