#include "sim/base/files.hpp"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <csignal>

#include "sim/base/errors.hpp"
#include "tests/temporary_directory.hpp"

namespace mllmsim {
namespace {

TEST(AtomicFile, ReplacesTheWholeFileAndLeavesNothingElse) {
  const TemporaryDirectory dir;
  write_file_atomically(dir / "a.txt", "a longer first version");
  write_file_atomically(dir / "a.txt", "second");
  EXPECT_EQ(contents(dir / "a.txt"), "second");
  EXPECT_EQ(dir.entries(), 1U);
}

TEST(AtomicFile, WritesThroughASymbolicLink) {
  const TemporaryDirectory dir;
  write_file_atomically(dir / "target", "old");
  std::filesystem::create_symlink("target", dir / "link");
  write_file_atomically(dir / "link", "new");
  EXPECT_TRUE(std::filesystem::is_symlink(dir / "link"));
  EXPECT_EQ(contents(dir / "target"), "new");
}

TEST(AtomicFile, WritesToADeviceInPlace) {
  write_file_atomically("/dev/null", "gone");
  EXPECT_TRUE(std::filesystem::is_character_file("/dev/null"));
}

// Writes and returns what the EnvironmentError says.
std::string failure(const std::filesystem::path& path, std::string_view text = "text") {
  try {
    write_file_atomically(path, text);
  } catch (const EnvironmentError& e) {
    return e.what();
  }
  return "no EnvironmentError";
}

TEST(AtomicFile, MissingDirectoryIsNamedAndNotCreated) {
  const TemporaryDirectory dir;
  const std::filesystem::path path = dir / "missing/a.txt";
  EXPECT_EQ(failure(path), "cannot write " + path.string() + ": No such file or directory");
  EXPECT_EQ(dir.entries(), 0U);
}

TEST(AtomicFile, AFileIsNotADirectory) {
  const TemporaryDirectory dir;
  write_file_atomically(dir / "file", "kept");
  const std::filesystem::path path = dir / "file/a.txt";
  EXPECT_EQ(failure(path), "cannot write " + path.string() + ": Not a directory");
  EXPECT_EQ(contents(dir / "file"), "kept");
  EXPECT_EQ(dir.entries(), 1U);
  EXPECT_THROW(make_directories(dir / "file/b"), EnvironmentError);
}

TEST(AtomicFile, ADirectoryIsNotReplaced) {
  const TemporaryDirectory dir;
  EXPECT_EQ(failure(dir.path()), "cannot write " + dir.path().string() + ": Is a directory");
  EXPECT_EQ(dir.entries(), 0U);
}

TEST(AtomicFile, UnwritableDirectoryIsLeftAlone) {
  // Not a permission bit, which root ignores: /proc refuses new files to everyone.
  EXPECT_NE(failure("/proc/a.txt").find("cannot write /proc/a.txt: "), std::string::npos);
}

// A full disk, played by a limit on file size: 8 bytes are allowed, 16 are written.
TEST(AtomicFile, AFullDiskKeepsTheOldVersion) {
  const TemporaryDirectory dir;
  write_file_atomically(dir / "a.txt", "old");
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  const rlimit small{8, before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  const std::string message = failure(dir / "a.txt", "sixteen bytes...");
  setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, handler);

  EXPECT_EQ(message, "cannot write " + (dir / "a.txt").string() + ": File too large");
  EXPECT_EQ(contents(dir / "a.txt"), "old");
  EXPECT_EQ(dir.entries(), 1U);
}

// The second cannot be written, so the first keeps its old version.
TEST(AtomicFile, FilesThatBelongTogetherChangeTogether) {
  const TemporaryDirectory dir;
  const FileContents old[] = {{dir / "a.txt", "old"}, {dir / "b.txt", "old"}};
  write_files_atomically(old);
  const FileContents files[] = {{dir / "a.txt", "new"}, {dir / "missing" / "b.txt", "new"}};
  EXPECT_THROW(write_files_atomically(files), EnvironmentError);
  EXPECT_EQ(contents(dir / "a.txt"), "old");
  EXPECT_EQ(contents(dir / "b.txt"), "old");
  EXPECT_EQ(dir.entries(), 2U);
}

}  // namespace
}  // namespace mllmsim
