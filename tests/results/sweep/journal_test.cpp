// What survives when a sweep ends badly.
#include "results/sweep/journal.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>

#include "results/sweep/record.hpp"
#include "sim/base/errors.hpp"
#include "tests/results/example_run.hpp"
#include "tests/temporary_directory.hpp"

namespace mllmsim {
using namespace costs;
using namespace results;
using namespace sweep;
namespace {

// Fields that a journal keeps: everything but steps, timelines and the scenario's text.
RunResult journaled() {
  RunResult run = example_run();
  run.steps.clear();
  run.spans.clear();
  run.memory.clear();
  run.scenario_text.clear();
  return run;
}

void append_bytes(const std::filesystem::path& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary | std::ios::app) << bytes;
}

TEST(Record, KeepsEveryField) {
  const auto record = decode(encode("key", journaled()));
  ASSERT_TRUE(record);
  EXPECT_EQ(record->key, "key");
  EXPECT_EQ(encode("key", record->run), encode("key", journaled()));
  EXPECT_EQ(record->run.stages.size(), 2U);
  EXPECT_EQ(record->run.peak_memory, journaled().peak_memory);
}

TEST(Record, CutAnywhereIsNone) {
  const std::string whole = encode("key", journaled());
  for (std::size_t n = 0; n < whole.size(); ++n) EXPECT_FALSE(decode(whole.substr(0, n))) << n;
}

TEST(Record, WithATruthValueThatIsNoneIsNone) {
  RunResult yes = journaled(), no = journaled();
  yes.fits = true;
  no.fits = false;
  std::string bytes = encode("key", yes);
  const std::string other = encode("key", no);
  const auto at = std::mismatch(bytes.begin(), bytes.end(), other.begin()).first - bytes.begin();
  bytes[static_cast<std::size_t>(at)] = 2;
  EXPECT_FALSE(decode(bytes));
}

TEST(Journal, HasWhatWasAppendedWhenOpenedAgain) {
  const TemporaryDirectory dir;
  {
    Journal journal(dir.path());
    journal.append("a", journaled());
    journal.append("b", journaled());
  }
  const Journal again(dir.path());
  EXPECT_EQ(again.finished().size(), 2U);
  EXPECT_EQ(again.finished().at("b").name, "tiny");
  EXPECT_EQ(again.cut_off(), 0U);
}

TEST(Journal, DropsATornRecordAndGoesOnBehindTheLastWholeOne) {
  const TemporaryDirectory dir;
  const auto path = journal_file(dir.path());
  { Journal(dir.path()).append("a", journaled()); }
  const auto whole = std::filesystem::file_size(path);
  { Journal(dir.path()).append("torn", journaled()); }
  std::filesystem::resize_file(path, std::filesystem::file_size(path) - 1);
  const auto torn = std::filesystem::file_size(path) - whole;
  {
    Journal journal(dir.path());
    EXPECT_EQ(journal.finished().size(), 1U);
    EXPECT_EQ(journal.cut_off(), torn);
    journal.append("c", journaled());
  }
  const Journal again(dir.path());
  EXPECT_EQ(again.finished().size(), 2U);
  EXPECT_TRUE(again.finished().contains("c"));
  EXPECT_EQ(again.cut_off(), 0U);
}

TEST(Journal, DropsWhatDoesNotMatchItsChecksum) {
  const TemporaryDirectory dir;
  { Journal(dir.path()).append("a", journaled()); }
  std::string bytes = contents(journal_file(dir.path()));
  bytes[bytes.size() / 2] ^= 1;
  std::ofstream(journal_file(dir.path()), std::ios::binary) << bytes;
  EXPECT_TRUE(Journal(dir.path()).finished().empty());
}

TEST(Journal, DropsZerosThatAPowerCutLeft) {
  const TemporaryDirectory dir;
  { Journal(dir.path()).append("a", journaled()); }
  append_bytes(journal_file(dir.path()), std::string(4096, '\0'));
  const Journal again(dir.path());
  EXPECT_EQ(again.finished().size(), 1U);
  EXPECT_EQ(again.cut_off(), 4096U);
}

TEST(Journal, RefusesAFileThatIsNoJournal) {
  const TemporaryDirectory dir;
  append_bytes(journal_file(dir.path()), "my only copy of something else");
  EXPECT_THROW(Journal(dir.path()), EnvironmentError);
  EXPECT_EQ(contents(journal_file(dir.path())), "my only copy of something else");
}

TEST(Journal, IsHeldByOneAtATime) {
  const TemporaryDirectory dir;
  const Journal first(dir.path());
  EXPECT_THROW(Journal(dir.path()), EnvironmentError);
}

TEST(Journal, CountsRecordsWhileAnotherWrites) {
  const TemporaryDirectory dir;
  EXPECT_EQ(journal_records(dir.path()), 0U);
  Journal journal(dir.path());
  journal.append("a", journaled());
  EXPECT_EQ(journal_records(dir.path()), 1U);
}

}  // namespace
}  // namespace mllmsim
