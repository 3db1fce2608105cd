#include "sim/base/files.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <optional>
#include <system_error>
#include <utility>
#include <vector>

#include "sim/base/errors.hpp"
#include "sim/base/pending_file.hpp"
#include "sim/base/text.hpp"

namespace mllmsim {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void fail(const fs::path& path, int error, const char* doing = "write") {
  throw EnvironmentError(fmt::format("cannot {} {}: {}", doing, path.string(),
                                     std::generic_category().message(error)));
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
  bool status(struct stat& out) const { return ::fstat(fd_, &out) == 0; }
  // Up to the end, or until it is more than `limit`; files in /proc do not know their size.
  bool read(std::string& out, std::uint64_t limit) {
    constexpr std::size_t kBlock = 1 << 16;
    std::size_t size = 0;
    ssize_t n = 1;
    while (n != 0 && size <= limit) {
      if (size == out.size()) out.resize(size < out.capacity() ? out.capacity() : size + kBlock);
      n = ::read(fd_, out.data() + size, out.size() - size);
      if (n < 0 && errno != EINTR) return false;
      if (n > 0) size += static_cast<std::size_t>(n);
    }
    out.resize(size);
    return true;
  }
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

constexpr std::string_view kTemporary = ".tmp-";  // then PID-ATTEMPT

// The process that wrote a temporary file of this name; nothing if it is not such a name.
std::optional<pid_t> writer_of(std::string_view name) {
  const std::size_t at = name.rfind(kTemporary);
  if (at == std::string_view::npos) return std::nullopt;
  const std::string_view numbers = name.substr(at + kTemporary.size());
  const std::size_t dash = numbers.find('-');
  if (dash == std::string_view::npos || !to_number<unsigned>(numbers.substr(dash + 1)))
    return std::nullopt;
  const auto pid = to_number<pid_t>(numbers.substr(0, dash));
  return pid && *pid > 0 ? pid : std::nullopt;
}

// A new file beside the target. Not mkstemp: that would make results unreadable for others.
int create_beside(const fs::path& target, TemporaryName& name) {
  for (int attempt = 0;; ++attempt) {
    name.path = target;
    name.path += fmt::format("{}{}-{}", kTemporary, ::getpid(), attempt);
    const int fd = ::open(name.path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    name.exists = fd >= 0;
    if (fd >= 0 || errno != EEXIST) return fd;
  }
}

// Held while files that belong together take their places, so that those of two processes do not
// mix. Where a file system has no locks there is none.
class DirectoryLock {
 public:
  explicit DirectoryLock(std::span<const FileContents> files)
      : directory_(files.empty() ? -1 : open_directory(files.front().path)) {}

 private:
  static int open_directory(const fs::path& file) {
    const fs::path directory = file.has_parent_path() ? file.parent_path() : fs::path(".");
    const int fd = ::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    while (fd >= 0 && ::flock(fd, LOCK_EX) != 0 && errno == EINTR) {
    }
    return fd;
  }

  File directory_;  // closing it unlocks
};

}  // namespace

struct PendingFile::State {
  fs::path path, target;
  TemporaryName temporary;
  std::optional<File> file;
};

PendingFile::PendingFile(const fs::path& path) : state_(std::make_unique<State>()) {
  state_->path = path;
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (fs::is_directory(status)) fail(path, EISDIR);
  if (fs::exists(status) && !fs::is_regular_file(status)) {
    state_->file.emplace(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
  } else {
    // Through symbolic links, and with a parent directory to sync.
    state_->target = fs::weakly_canonical(fs::absolute(path), error);
    if (error) fail(path, error.value());
    state_->file.emplace(create_beside(state_->target, state_->temporary));
  }
  if (!state_->file->is_open()) fail(path, errno);
}

PendingFile::~PendingFile() = default;

void PendingFile::write(std::string_view contents) {
  if (!state_->file->write(contents)) fail(state_->path, errno);
}

void PendingFile::close() {
  const bool synced = !state_->temporary.exists || state_->file->sync();
  if (!synced || !state_->file->close()) fail(state_->path, errno);
}

void PendingFile::put_in_place() {
  if (!state_->temporary.exists) return;  // written in place
  if (::rename(state_->temporary.path.c_str(), state_->target.c_str()) != 0)
    fail(state_->path, errno);
  state_->temporary.exists = false;
  File directory(::open(state_->target.parent_path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  // Some file systems cannot sync a directory; the rename has happened all the same.
  if (directory.is_open() && !directory.sync() && errno != EINVAL) fail(state_->path, errno);
}

std::string read_file(const fs::path& path, std::uint64_t limit) {
  const auto wrong = [&](const std::string& why) { return UserError(path.string(), "", why); };
  File file(::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));  // a pipe is not waited for
  if (!file.is_open()) {
    const int error = errno;
    for (const int no_file : {ENOENT, ENOTDIR, ENAMETOOLONG, ELOOP})
      if (error == no_file) throw wrong("no such file");
    fail(path, error, "read");
  }
  struct stat status {};
  if (!file.status(status)) fail(path, errno, "read");
  if (S_ISDIR(status.st_mode)) throw wrong("is a directory, not a file");
  if (!S_ISREG(status.st_mode)) throw wrong("not a file that can be read");
  const auto size = static_cast<std::uint64_t>(status.st_size);
  std::string out;
  if (size <= limit) {
    out.reserve(size + 1);  // one more, to see the end
    if (!file.read(out, limit)) fail(path, errno, "read");
  }
  if (const std::uint64_t found = std::max<std::uint64_t>(size, out.size()); found > limit)
    throw wrong(fmt::format("too large: {} bytes, at most {}", found, limit));
  return out;
}

void write_files_atomically(std::span<const FileContents> files) {
  std::vector<std::unique_ptr<PendingFile>> pending;
  for (const FileContents& f : files) {
    pending.push_back(std::make_unique<PendingFile>(f.path));
    pending.back()->write(f.contents);
    pending.back()->close();
  }
  const DirectoryLock lock(files);
  for (const auto& file : pending) file->put_in_place();
}

void write_file_atomically(const fs::path& path, std::string_view contents) {
  PendingFile file(path);
  file.write(contents);
  file.close();
  file.put_in_place();
}

void remove_stale_temporaries(const fs::path& directory) {
  std::error_code error;
  std::vector<fs::path> stale;
  for (fs::directory_iterator it(directory, error), end; !error && it != end; it.increment(error)) {
    const auto pid = writer_of(it->path().filename().string());
    std::error_code unknown;
    if (pid && ::kill(*pid, 0) != 0 && errno == ESRCH &&
        it->symlink_status(unknown).type() == fs::file_type::regular)
      stale.push_back(it->path());
  }
  for (const fs::path& path : stale) ::unlink(path.c_str());
}

void make_directories(const fs::path& dir) {
  std::error_code error;
  fs::create_directories(dir, error);
  if (error)
    throw EnvironmentError(
        fmt::format("cannot create directory {}: {}", dir.string(), error.message()));
}

}  // namespace mllmsim
