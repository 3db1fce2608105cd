#include "sim/base/process.hpp"

#include <gtest/gtest.h>

#include <csignal>

namespace mllmsim {
namespace {

TEST(RunProcess, PassesInputAndTakesBothOutputs) {
  const ProcessEnd end = run_process({"sh", "-c", "cat; echo no >&2; exit 3"}, "yes");
  EXPECT_EQ(end.out, "yes");
  EXPECT_EQ(end.err, "no\n");
  EXPECT_EQ(end.exit_code, 3);
  EXPECT_FALSE(end.ok());
}

TEST(RunProcess, ArgumentsReachNoShell) {
  EXPECT_EQ(run_process({"printf", "%s", "$HOME; `id` 'x' \"y\""}).out, "$HOME; `id` 'x' \"y\"");
}

// More than a pipe holds, both ways.
TEST(RunProcess, NeitherSideWaitsForTheOther) {
  const std::string much(1 << 20, 'x');
  EXPECT_EQ(run_process({"cat"}, much).out, much);
  EXPECT_TRUE(run_process({"true"}, much).ok());
}

TEST(RunProcess, TellsASignalFromAnExit) {
  const ProcessEnd end = run_process({"sh", "-c", "kill -TERM $$"});
  EXPECT_EQ(end.signal, SIGTERM);
  EXPECT_FALSE(end.ok());
}

TEST(RunProcess, AMissingProgramIsNamed) {
  EXPECT_THROW(run_process({"no-such-program-here"}), ProgramNotFound);
  EXPECT_THROW(run_process({"/"}), EnvironmentError);
}

}  // namespace
}  // namespace mllmsim
