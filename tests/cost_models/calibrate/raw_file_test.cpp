#include "cost_models/calibrate/raw_file.hpp"

#include <gtest/gtest.h>

#include <fstream>
#include <iterator>

#include "cost_models/calibrate/run.hpp"
#include "cost_models/kernels/kernel_costs.hpp"
#include "sim/base/errors.hpp"
#include "tests/cost_models/calibrate/fake_backend.hpp"
#include "tests/temporary_directory.hpp"

namespace mllmsim::calibrate {
using namespace costs;
namespace {

const Header kHeader{{{"gpu", "A100"}, {"driver", "550"}}, 1410};
const Task kLaunch = LaunchTask{};
const Task kCopy = CopyTask{CopyKind::h2d, 4096};

struct RawFileTest : testing::Test {
  TemporaryDirectory directory;
  std::filesystem::path file = directory / "raw.jsonl";

  // A header and two measurements.
  void write() {
    RawFile raw(file, kHeader, "today");
    raw.append(kLaunch, {2.5e-6, 0.01, 30});
    raw.append(kCopy, {1e-3, 0, 10});
  }
};

TEST_F(RawFileTest, AHeaderAndALineAMeasurement) {
  write();
  EXPECT_EQ(
      contents(file),
      R"({"header": {"gpu": "A100", "driver": "550", "clock_mhz": 1410, "date": "today"}})"
      "\n"
      R"({"part": "launch", "us": 2.5, "spread": 0.01, "samples": 30})"
      "\n"
      R"({"part": "copy", "kind": "h2d", "bytes": 4096, "us": 1000, "spread": 0, "samples": 10})"
      "\n");
}

TEST_F(RawFileTest, AnOverlapIsARatio) {
  {
    RawFile raw(file, kHeader, "today");
    raw.append(OverlapTask{{CollectiveOp::all_reduce, Bytes{64}, {2, 1, 1}}, {1, 2, 3}},
               {1.25, 0, 5});
  }
  EXPECT_NE(contents(file).find(R"("slowdown": 1.25,)"), std::string::npos);
  EXPECT_EQ(contents(file).find(R"("us")"), std::string::npos);
}

TEST_F(RawFileTest, ContinuesWhatIsThere) {
  write();
  const std::string before = contents(file);
  const RawFile again(file, kHeader, "tomorrow");
  EXPECT_EQ(again.size(), 2u);
  EXPECT_TRUE(again.has(kLaunch));
  EXPECT_TRUE(again.has(kCopy));
  EXPECT_FALSE(again.has(CopyTask{CopyKind::d2h, 4096}));
  EXPECT_EQ(contents(file), before);
}

// Wherever the machine stopped while writing, opening again leaves whole lines only.
TEST_F(RawFileTest, ATornLastLineIsDroppedWhereverItTears) {
  write();
  const std::string whole = contents(file);
  const std::size_t last = whole.rfind('\n', whole.size() - 2) + 1;
  for (std::size_t cut = last + 1; cut < whole.size(); ++cut) {
    std::ofstream(file, std::ios::binary) << whole.substr(0, cut);
    {
      RawFile raw(file, kHeader, "today");
      ASSERT_EQ(raw.size(), 1u) << cut;
      raw.append(kCopy, {1e-3, 0, 10});
    }
    ASSERT_EQ(contents(file), whole) << cut;
  }
}

TEST_F(RawFileTest, ATornHeaderIsWrittenAgain) {
  std::ofstream(file) << R"({"header":{"gpu":"A1)";
  write();
  EXPECT_EQ(RawFile(file, kHeader, "today").size(), 2u);
}

TEST_F(RawFileTest, ZerosInPlaceOfTheLastLineAreDropped) {
  write();
  std::ofstream(file, std::ios::app) << std::string(20, '\0') << "\n";
  EXPECT_EQ(RawFile(file, kHeader, "today").size(), 2u);
}

TEST_F(RawFileTest, AForeignFileIsRefusedAndUntouched) {
  write();
  const std::string before = contents(file);
  const Header other{{{"gpu", "H100"}, {"driver", "550"}}, 1980};
  try {
    RawFile raw(file, other, "today");
    FAIL() << "accepted";
  } catch (const UserError& e) {
    EXPECT_EQ(std::string(e.what()),
              file.string() +
                  ":1: header.gpu: measured with \"A100\", but this is \"H100\"; "
                  "use another --out");
  }
  EXPECT_EQ(contents(file), before);
}

TEST_F(RawFileTest, SomeOtherFileIsRefused) {
  std::ofstream(file) << "dear diary\n";
  EXPECT_THROW(RawFile(file, kHeader, "today"), UserError);
}

TEST_F(RawFileTest, DamageInTheMiddleIsReported) {
  write();
  std::ofstream(file, std::ios::app) << "{\n"
                                     << R"({"part":"launch","us":1.0})"
                                     << "\n";
  try {
    RawFile raw(file, kHeader, "today");
    FAIL() << "accepted";
  } catch (const UserError& e) {
    EXPECT_EQ(std::string(e.what()), file.string() + ":4:2: not valid JSON: incomplete JSON");
  }
}

TEST_F(RawFileTest, ADirectoryThatIsNotThereIsTheEnvironments) {
  EXPECT_THROW(RawFile(directory / "absent" / "raw.jsonl", kHeader, "today"), EnvironmentError);
}

Plan small_plan() {
  PlanOptions options;
  options.quick = true;
  options.parts = {"launch", "copy"};
  return make_plan(options);
}

TEST_F(RawFileTest, ARunMeasuresWhatIsMissing) {
  FakeBackend backend({1e-3});
  const Plan plan = small_plan();
  RawFile raw(file, backend.header(), "today");
  raw.append(plan.tasks[1], {1, 0, 1});
  EXPECT_EQ(remaining(plan, raw).size(), plan.tasks.size() - 1);
  Progress progress(std::tmpfile(), /*terminal=*/false);
  const int measured = run_plan(plan, backend, &raw, progress, backend.clock());
  EXPECT_EQ(measured, static_cast<int>(plan.tasks.size()) - 1);
  EXPECT_EQ(backend.prepared.count(key(plan.tasks[1])), 0u);
  EXPECT_TRUE(remaining(plan, raw).empty());
}

TEST_F(RawFileTest, ARunGoesOnWithoutWhatCannotBeMeasured) {
  FakeBackend backend({1e-3});
  backend.refuse = "copy";
  const Plan plan = small_plan();
  RawFile raw(file, backend.header(), "today");
  Progress progress(std::tmpfile(), /*terminal=*/false);
  EXPECT_EQ(run_plan(plan, backend, &raw, progress, backend.clock()), 1);
}

// Node 1 is slower, yet repeats what spans nodes as often as node 0 decided, and nothing else.
TEST_F(RawFileTest, NodesRepeatTogether) {
  PlanOptions options;
  options.quick = true;
  options.nodes = 2;
  options.parts = {"p2p"};
  const Plan plan = make_plan(options);
  std::deque<double> decisions;
  FakeBackend first({1e-3}), second({1e-1, 3e-1});
  first.decisions = second.decisions = &decisions;
  second.leads = false;
  Progress progress(std::tmpfile(), /*terminal=*/false);
  {
    RawFile raw(file, first.header(), "today");
    raw.append(plan.tasks[0], {1, 0, 1});  // node 1 cannot know that this is done
    run_plan(plan, first, &raw, progress, first.clock());
  }
  run_plan(plan, second, nullptr, progress, second.clock());
  EXPECT_TRUE(decisions.empty());
  const std::size_t spanning = plan.tasks.size() / 2;
  EXPECT_EQ(second.prepared.size(), spanning - 1);
  // Node 0 also measures the other half, inside itself, at the same pace.
  EXPECT_EQ(first.repetitions * static_cast<int>(spanning - 1),
            second.repetitions * static_cast<int>(plan.tasks.size() - 1));
}

}  // namespace
}  // namespace mllmsim::calibrate
