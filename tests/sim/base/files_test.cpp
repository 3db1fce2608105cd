#include "sim/base/files.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include "sim/base/errors.hpp"
#include "tests/temporary_directory.hpp"

namespace mllmsim {
namespace {

// What the UserError says, less the path.
std::string refusal(const std::filesystem::path& path, std::uint64_t limit = kSmallFile) {
  try {
    return "read: " + read_file(path, limit);
  } catch (const UserError& e) {
    return e.problems().at(0).message;
  }
}

TEST(ReadFile, GivesEveryByte) {
  const TemporaryDirectory dir;
  const std::string text("a\0b\r\n", 5);
  write_file_atomically(dir / "a", text);
  EXPECT_EQ(read_file(dir / "a", kSmallFile), text);
  write_file_atomically(dir / "a", "");
  EXPECT_EQ(read_file(dir / "a", kSmallFile), "");
}

TEST(ReadFile, TakesFilesUpToTheLimit) {
  const TemporaryDirectory dir;
  write_file_atomically(dir / "a", "1234");
  EXPECT_EQ(refusal(dir / "a", 4), "read: 1234");
  EXPECT_EQ(refusal(dir / "a", 3), "too large: 4 bytes, at most 3");
}

// Its size is 0, whatever is in it.
TEST(ReadFile, ReadsWhatTheKernelMakesUp) {
  EXPECT_TRUE(read_file("/proc/self/status", kSmallFile).starts_with("Name:"));
}

TEST(ReadFile, RefusesWhatIsNoFile) {
  const TemporaryDirectory dir;
  ASSERT_EQ(::mkfifo((dir / "pipe").c_str(), 0600), 0);
  EXPECT_EQ(refusal(dir / "absent"), "no such file");
  EXPECT_EQ(refusal(dir.path()), "is a directory, not a file");
  EXPECT_EQ(refusal(dir / "pipe"), "not a file that can be read");
}

TEST(ReadFile, UnreadableIsTheEnvironments) {
  // Not a permission bit, which root ignores: the memory of a process cannot be read at 0.
  EXPECT_THROW(read_file("/proc/self/mem", kSmallFile), EnvironmentError);
}

}  // namespace
}  // namespace mllmsim
