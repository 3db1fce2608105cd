// Files that many scenarios share are read once, and what was read is known by its hash.
#include "scenarios/files/input_files.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "scenarios/read/scenario.hpp"
#include "tests/scenarios/support.hpp"

namespace mllmsim::test {
using namespace data;
using namespace scenarios;
namespace {

TEST(InputFiles, AFileIsReadOnce) {
  const Directory dir;
  const auto path = dir.write("a.toml", "x = 1\n");
  InputFiles files;
  const Node* first = &files.toml(path);
  dir.write("a.toml", "x = 2\n");
  EXPECT_EQ(&files.toml(path), first);
  EXPECT_EQ(first->find("x")->as<std::int64_t>(), 1);
}

TEST(InputFiles, SharingThemChangesNoScenario) {
  const Directory dir;
  const auto path = dir.write("run.toml", kSmallRun);
  InputFiles files;
  for (const char* change : {"parallelism.global_batch_size=16", "seed=3"})
    EXPECT_EQ(read_scenario(path, {change}, &files).text, read_scenario(path, {change}).text);
}

// Parts that say what the last scenario's said are not read again.
TEST(InputFiles, SharingThemChangesNoPart) {
  const Directory dir;
  const auto path = dir.write("run.toml", kSmallRun);
  InputFiles files;
  const std::vector<std::string> changes{"seed=3",
                                         "model.llm.num_hidden_layers=3",
                                         "model.llm.num_hidden_layers=4",
                                         "software.flash_attention=false",
                                         "seed=4",
                                         "recompute=\"selective\"",
                                         "model.llm.num_hidden_layers=4"};
  for (const std::string& change : changes) {
    const Job shared = read_scenario(path, {change}, &files).job;
    const Job alone = read_scenario(path, {change}).job;
    EXPECT_EQ(shared.model, alone.model) << change;
    EXPECT_EQ(shared.software, alone.software) << change;
    for (int twice = 0; twice < 2; ++twice)
      EXPECT_THROW(read_scenario(path, {change, "model.llm.hidden_size=-1"}, &files), UserError);
  }
}

DataSet set_of(std::int32_t tokens) { return {{{1, tokens}}, {{"a", 0, 1}}}; }

TEST(InputFiles, ADataSetIsMadeOnceAndKnownByItsSamples) {
  InputFiles files;
  int made = 0;
  const auto make = [&] { return ++made, set_of(100); };
  const auto a = files.data_set("a", make);
  EXPECT_EQ(files.data_set("a", make), a);
  EXPECT_EQ(made, 1);
  const auto other = files.data_set("b", [] { return set_of(101); });
  EXPECT_NE(files.data_hash(a), files.data_hash(other));
  EXPECT_EQ(files.hashes().at("a"), files.data_hash(a));
}

// A sweep over seeds: sets used long ago make room, those in use stay valid.
TEST(InputFiles, OldDataSetsMakeRoom) {
  InputFiles files;
  const auto first = files.data_set("0", [] { return set_of(0); });
  std::weak_ptr<const DataSet> second = files.data_set("1", [] { return set_of(1); });
  for (int i = 2; i < 40; ++i) files.data_set(std::to_string(i), [&] { return set_of(i); });
  EXPECT_TRUE(second.expired());
  EXPECT_EQ(first->samples.front().tokens, 0);
}

}  // namespace
}  // namespace mllmsim::test
