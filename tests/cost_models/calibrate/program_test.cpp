// The executable from outside: exit codes, what it says, and a tiny run.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <cstdlib>
#include <fstream>
#include <iterator>

#include "cost_models/calibrate/plan.hpp"
#include "tests/temporary_directory.hpp"

namespace mllmsim::calibrate {
using namespace costs;
namespace {

struct Outcome {
  int exit = -1;
  std::string out, err;
};

struct Program : testing::Test {
  TemporaryDirectory directory;
  std::string raw = (directory / "raw.jsonl").string();

  // CUDA_VISIBLE_DEVICES hides the GPUs of a machine that has some.
  Outcome run(const std::string& arguments) const {
    const auto out = directory / "out", err = directory / "err";
    const std::string command =
        fmt::format("CUDA_VISIBLE_DEVICES= {} {} >{} 2>{}", MLLMSIM_CALIBRATE, arguments,
                    out.string(), err.string());
    const int status = std::system(command.c_str());
    return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, contents(out), contents(err)};
  }
};

TEST_F(Program, HelpListsTheOptions) {
  const Outcome help = run("--help");
  EXPECT_EQ(help.exit, 0);
  for (const char* option : {"--backend", "--out", "--quick", "--plan", "--parts", "--shapes"})
    EXPECT_NE(help.out.find(option), std::string::npos) << option;
}

TEST_F(Program, WrongArgumentsExitWithTwo) {
  for (const char* arguments :
       {"--no-such-option", "positional", "--backend tpu", "--parts gemm,nonsense", "--model 1,2",
        "--minutes 0", "--gpus 0", "--nodes 2", "--nodes 2 --node-rank 2 --rendezvous x",
        "--shapes /no/such/file", "--max-flops -1"}) {
    const Outcome outcome = run(arguments);
    EXPECT_EQ(outcome.exit, 2) << arguments;
    EXPECT_NE(outcome.err, "") << arguments;
  }
}

TEST_F(Program, PlanNeedsNoDevice) {
  const Outcome plan = run("--plan --quick");
  EXPECT_EQ(plan.exit, 0);
  EXPECT_EQ(plan.out.rfind("part ", 0), 0u);
  for (const char* line : {"gemm ", "gemm fp8 ", "gemm of experts ", "collective ",
                           "collective, all-to-all ", "total"})
    EXPECT_NE(plan.out.find(line), std::string::npos) << line;
}

TEST_F(Program, WithoutAGpuItSaysSoInOneLine) {
  const Outcome outcome = run("--backend cuda --out " + raw);
  EXPECT_EQ(outcome.exit, 4);
  EXPECT_EQ(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 1) << outcome.err;
  EXPECT_FALSE(std::filesystem::exists(raw));
}

TEST_F(Program, MeasuresThisCpuAndContinues) {
  const std::string arguments =
      "--backend host --quick --gpus 2 --minutes 0.01 --max-flops 1e6 --max-bytes 1e5 --out " + raw;
  const Outcome first = run(arguments);
  ASSERT_EQ(first.exit, 0) << first.err;
  const std::string measured = contents(raw);
  EXPECT_EQ(measured.rfind(R"({"header": {"gpu": "host: )", 0), 0u);
  EXPECT_GT(read_shapes(raw).size(), 5u);

  // The last line torn: it alone is measured again.
  std::filesystem::resize_file(raw, measured.size() - 3);
  const Outcome second = run(arguments);
  ASSERT_EQ(second.exit, 0) << second.err;
  EXPECT_NE(second.err.find("1 measurements added"), std::string::npos) << second.err;
  EXPECT_EQ(read_shapes(raw).size(),
            static_cast<std::size_t>(std::count(measured.begin(), measured.end(), '\n') - 1));
}

TEST_F(Program, AFileOfAnotherDeviceIsRefused) {
  std::ofstream(raw) << R"({"header":{"gpu":"A100"}})"
                     << "\n";
  const Outcome outcome = run("--backend host --parts launch --out " + raw);
  EXPECT_EQ(outcome.exit, 2);
  EXPECT_NE(outcome.err.find("header.gpu: measured with \"A100\""), std::string::npos);
}

TEST_F(Program, AnUnwritableFileExitsWithThree) {
  EXPECT_EQ(run("--backend host --parts launch --out /no/such/directory/raw").exit, 3);
}

}  // namespace
}  // namespace mllmsim::calibrate
