#include "results/sweep/journal.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <system_error>

#include "results/sweep/record.hpp"
#include "sim/base/errors.hpp"
#include "sim/base/files.hpp"
#include "sim/base/hash.hpp"

namespace mllmsim::sweep {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kMagic = "mllmsim sweep journal\n";
constexpr std::size_t kHeader = kMagic.size() + sizeof(std::uint64_t);
constexpr std::size_t kFrame = sizeof(std::uint32_t) + sizeof(std::uint64_t);

template <class T>
void put(std::string& out, T value) {
  out.append(reinterpret_cast<const char*>(&value), sizeof value);
}

template <class T>
T get(std::string_view bytes) {
  T value;
  std::memcpy(&value, bytes.data(), sizeof value);
  return value;
}

std::string header() {
  std::string out(kMagic);
  put(out, record_layout());
  return out;
}

// The payload of the record that the bytes start with; null if it is torn.
const char* frame(std::string_view bytes, std::uint32_t& size) {
  if (bytes.size() < kFrame) return nullptr;
  size = get<std::uint32_t>(bytes);
  if (bytes.size() - kFrame < size) return nullptr;
  const std::string_view payload = bytes.substr(kFrame, size);
  const bool whole = fnv1a(payload) == get<std::uint64_t>(bytes.substr(sizeof(std::uint32_t)));
  return whole ? payload.data() : nullptr;
}

}  // namespace

fs::path journal_file(const fs::path& directory) { return directory / "sweep.journal"; }

std::size_t journal_records(const fs::path& directory) {
  const fs::path file = journal_file(directory);
  std::error_code error;
  if (!fs::exists(file, error)) return 0;
  const std::string all = read_file(file, kLargeFile);
  if (!all.starts_with(header())) return 0;
  std::size_t records = 0;
  std::uint32_t size = 0;
  for (std::string_view rest = std::string_view(all).substr(kHeader); frame(rest, size);
       rest.remove_prefix(kFrame + size))
    ++records;
  return records;
}

Journal::Journal(const fs::path& directory) : path_(journal_file(directory)) {
  make_directories(directory);
  fd_ = ::open(path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
  if (fd_ < 0) fail("open");
  try {
    if (::flock(fd_, LOCK_EX | LOCK_NB) != 0) {
      if (errno == EWOULDBLOCK)
        throw EnvironmentError(
            fmt::format("another sweep is writing to {}; wait for it, or give --out another "
                        "directory",
                        directory.string()));
      fail("lock");
    }
    read();
  } catch (...) {
    ::close(fd_);
    throw;
  }
}

Journal::~Journal() {
  // Nothing more can be done here if it fails; sync() reports.
  if (::fsync(fd_) == 0) {
  }
  ::close(fd_);
}

void Journal::fail(const char* doing) const {
  throw EnvironmentError(fmt::format("cannot {} {}: {}", doing, path_.string(),
                                     std::generic_category().message(errno)));
}

void Journal::read() {
  const std::string all = read_file(path_, kLargeFile);
  const std::string wanted = header();
  const std::string_view magic = std::string_view(all).substr(0, kMagic.size());
  if (!kMagic.starts_with(magic))
    throw EnvironmentError(fmt::format("{} is not a journal of a sweep", path_.string()));
  if (all.starts_with(wanted)) {
    end_ = wanted.size();
    std::uint32_t size = 0;
    while (const char* payload = frame(std::string_view(all).substr(end_), size)) {
      auto record = decode({payload, size});
      if (!record) break;
      finished_.insert_or_assign(std::move(record->key), std::move(record->run));
      end_ += kFrame + size;
    }
  }
  cut_off_ = all.size() - end_;
  if (cut_off_ > 0 && ::ftruncate(fd_, static_cast<off_t>(end_)) != 0) fail("write");
  if (end_ == 0) write(wanted);
  sync();
}

void Journal::write(std::string_view bytes) {
  std::size_t done = 0;
  while (done < bytes.size()) {
    const ssize_t n =
        ::pwrite(fd_, bytes.data() + done, bytes.size() - done, static_cast<off_t>(end_ + done));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) {
      const int error = n < 0 ? errno : ENOSPC;
      // If it fails, the next opening cuts the tail off.
      if (::ftruncate(fd_, static_cast<off_t>(end_)) == 0) {
      }
      errno = error;
      fail("write");
    }
    done += static_cast<std::size_t>(n);
  }
  end_ += bytes.size();
}

void Journal::append(const std::string& key, const results::RunResult& run) {
  const std::string payload = encode(key, run);
  std::string record;
  put(record, static_cast<std::uint32_t>(payload.size()));
  put(record, fnv1a(payload));
  record += payload;
  const std::lock_guard lock(mutex_);
  write(record);
  if (std::chrono::steady_clock::now() - synced_ > kSyncInterval) sync();
}

void Journal::sync() {
  if (::fsync(fd_) != 0) fail("write");
  synced_ = std::chrono::steady_clock::now();
}

}  // namespace mllmsim::sweep
