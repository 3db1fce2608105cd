// The durable log of a sweep: DIR/sweep.journal, append-only, one record per finished point.
//
//   "mllmsim sweep journal\n"  layout (8 bytes)  { size (4)  checksum (8)  key, run, stages }...
//
// A record is handed to the system in one write as soon as its point is finished (so kill -9 loses
// none). The first one appended kSyncInterval or more after the last sync is synced to the disk
// with all before it, and so is everything at the end: a power cut loses at most what finished in
// one interval and since. Whatever ends badly, a torn or foreign tail does not match its checksum,
// or is no record, and is cut off at the next opening. `layout` is a hash of the columns: a journal
// with other columns starts anew. Only one process at a time may hold a journal. Numbers are in the
// byte order of the machine.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>

#include "results/run/run_result.hpp"

namespace mllmsim::sweep {

class Journal {
 public:
  static constexpr std::chrono::milliseconds kSyncInterval{200};

  // Opens or begins the journal of a directory and reads it. Throws EnvironmentError if it cannot,
  // or if another process holds it.
  explicit Journal(const std::filesystem::path& directory);
  ~Journal();
  Journal(const Journal&) = delete;
  Journal& operator=(const Journal&) = delete;

  // What was finished when it was opened, by key; runs have stages but no steps, spans or memory.
  const std::unordered_map<std::string, results::RunResult>& finished() const { return finished_; }
  // Bytes of a torn tail, or of a journal with other columns, that opening cut off.
  std::uint64_t cut_off() const { return cut_off_; }

  // Safe for concurrent use. On failure (disk full) the journal keeps its whole records only.
  void append(const std::string& key, const results::RunResult& run);
  void sync();

 private:
  void read();
  void write(std::string_view bytes);
  [[noreturn]] void fail(const char* doing) const;

  std::filesystem::path path_;
  int fd_ = -1;
  std::uint64_t end_ = 0;  // of the last whole record
  std::uint64_t cut_off_ = 0;
  std::unordered_map<std::string, results::RunResult> finished_;
  std::mutex mutex_;
  std::chrono::steady_clock::time_point synced_;
};

std::filesystem::path journal_file(const std::filesystem::path& directory);

// Whole records of a journal that another process may be writing; 0 if there is none.
std::size_t journal_records(const std::filesystem::path& directory);

}  // namespace mllmsim::sweep
