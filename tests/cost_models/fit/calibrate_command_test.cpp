#include "cost_models/fit/calibrate_command.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "cost_models/calibration/calibration.hpp"
#include "sim/base/json_reader.hpp"

namespace mllmsim {
using namespace costs;
using namespace fit;
namespace {

class CalibrateCommand : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::path(testing::TempDir()) /
              testing::UnitTest::GetInstance()->current_test_info()->name();
    std::filesystem::create_directories(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::string path(const std::string& name) const { return (folder_ / name).string(); }
  std::string write(const std::string& name, const std::string& text) const {
    std::ofstream(path(name)) << text;
    return path(name);
  }
  int run(const std::vector<std::string>& args) {
    out_.str(""), err_.str("");
    return run_calibrate(args, out_, err_);
  }

  std::filesystem::path folder_;
  std::ostringstream out_, err_;
};

TEST_F(CalibrateCommand, ImportFitShowAndScaleFollowEachOther) {
  const std::string log = write(
      "allreduce.log",
      "#  Rank 0 Pid 1 on a device 0 [0x00] A100-SXM4-80GB\n"
      "#  Rank 1 Pid 1 on a device 1 [0x00] A100-SXM4-80GB\n"
      "# size count type redop time algbw busbw error time algbw busbw error\n"
      "1024 256 float sum 20 0 0 N/A 20 0 0 N/A\n1048576 256 float sum 40 0 0 N/A 40 0 0 N/A\n"
      "2097152 256 float sum 50 0 0 N/A 50 0 0 N/A\n4194304 256 float sum 70 0 0 N/A 1 0 0 N/A\n");
  ASSERT_EQ(run({"import", "nccl", log, "--out", path("raw.jsonl")}), 0) << err_.str();
  EXPECT_EQ(err_.str(), "4 measurements\n");
  ASSERT_EQ(run({"fit", path("raw.jsonl"), "--out", path("my.json")}), 0) << err_.str();
  const Calibration fitted = read_calibration(path("my.json"));
  EXPECT_EQ(fitted.collectives.node_provenance.from, "allreduce.log");
  ASSERT_EQ(run({"show", path("my.json")}), 0);
  EXPECT_NE(out_.str().find("collectives in a node              interpolated        4"),
            std::string::npos)
      << out_.str();
  ASSERT_EQ(run({"scale", path("my.json"), "--collectives", "2", "--out", path("twice.json")}), 0);
  EXPECT_DOUBLE_EQ(read_calibration(path("twice.json")).collectives.node.back().curve.latency.value,
                   2 * fitted.collectives.node.back().curve.latency.value);
}

TEST_F(CalibrateCommand, WrongUseIsTwoAndTheEnvironmentThree) {
  EXPECT_EQ(run({}), 2);
  EXPECT_EQ(run({"fitt"}), 2);
  EXPECT_EQ(run({"show"}), 2);
  EXPECT_EQ(run({"show", "--wat", "x"}), 2);
  EXPECT_EQ(run({"scale", "x.json", "--gemm", "much"}), 2);
  EXPECT_EQ(run({"import", "vtune", "x"}), 2);
  EXPECT_EQ(run({"show", path("missing.json")}), 2);
  const std::string raw = write("raw.jsonl", "{\"part\":\"launch\",\"us\":2}\n");
  EXPECT_EQ(run({"fit", raw}), 2);                            // no --out
  EXPECT_EQ(run({"fit", raw, "--out", path("my.json")}), 2);  // no GPU
  EXPECT_EQ(run({"fit", raw, "--gpu", "A100-SXM4-80GB", "--out", path("no/such/my.json")}), 3);
}

TEST_F(CalibrateCommand, HelpIsData) {
  EXPECT_EQ(run({"--help"}), 0);
  EXPECT_EQ(out_.str().substr(0, 21), "usage: calibrate fit ");
}

}  // namespace
}  // namespace mllmsim
