#include "sim/base/atomic_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>
#include <utility>

#include "sim/base/errors.hpp"

namespace mllmsim {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void fail(const fs::path& path, int error) {
  throw EnvironmentError(
      fmt::format("cannot write {}: {}", path.string(), std::generic_category().message(error)));
}

class File {
 public:
  explicit File(int fd) : fd_(fd) {}
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  ~File() {
    if (fd_ >= 0) ::close(fd_);
  }

  bool is_open() const { return fd_ >= 0; }
  bool write(std::string_view contents) {
    while (!contents.empty()) {
      const ssize_t n = ::write(fd_, contents.data(), contents.size());
      if (n < 0 && errno != EINTR) return false;
      if (n > 0) contents.remove_prefix(static_cast<std::size_t>(n));
    }
    return true;
  }
  bool sync() { return ::fsync(fd_) == 0; }
  bool close() { return ::close(std::exchange(fd_, -1)) == 0; }  // reports late write errors

 private:
  int fd_;
};

// Removes the file unless it was renamed to its place.
struct TemporaryName {
  fs::path path;
  bool exists = false;

  ~TemporaryName() {
    if (exists) ::unlink(path.c_str());
  }
};

void write_in_place(const fs::path& path, std::string_view contents) {
  File file(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
  if (!file.is_open() || !file.write(contents) || !file.close()) fail(path, errno);
}

// A new file beside the target. Not mkstemp: that would make results unreadable for others.
int create_beside(const fs::path& target, TemporaryName& name) {
  for (int attempt = 0;; ++attempt) {
    name.path = target;
    name.path += fmt::format(".tmp-{}-{}", ::getpid(), attempt);
    const int fd = ::open(name.path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    name.exists = fd >= 0;
    if (fd >= 0 || errno != EEXIST) return fd;
  }
}

}  // namespace

void write_file_atomically(const fs::path& path, std::string_view contents) {
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (fs::is_directory(status)) fail(path, EISDIR);
  if (fs::exists(status) && !fs::is_regular_file(status)) return write_in_place(path, contents);
  // Through symbolic links, and with a parent directory to sync.
  const fs::path target = fs::weakly_canonical(fs::absolute(path), error);
  if (error) fail(path, error.value());

  TemporaryName temporary;
  File file(create_beside(target, temporary));
  if (!file.is_open() || !file.write(contents) || !file.sync() || !file.close()) fail(path, errno);
  if (::rename(temporary.path.c_str(), target.c_str()) != 0) fail(path, errno);
  temporary.exists = false;

  File directory(::open(target.parent_path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  // Some file systems cannot sync a directory; the rename has happened all the same.
  if (directory.is_open() && !directory.sync() && errno != EINVAL) fail(path, errno);
}

void make_directories(const fs::path& dir) {
  std::error_code error;
  fs::create_directories(dir, error);
  if (error)
    throw EnvironmentError(
        fmt::format("cannot create directory {}: {}", dir.string(), error.message()));
}

}  // namespace mllmsim
