// How far a long job is, on stderr: a bar with rate and time left on a terminal, otherwise a plain
// line every tenth of the way or half a minute, at most one per second, so that a batch log stays
// short.
#pragma once

#include <chrono>
#include <cstdio>
#include <mutex>
#include <string>

namespace mllmsim {

// "1234 of 10000 points, 312/s, 0:28 left"; without a rate while it is not known.
std::string progress_text(std::size_t done, std::size_t total, double per_second);
// The same behind a bar, "[=====>     ]".
std::string progress_bar(std::size_t done, std::size_t total, double per_second);

class Progress {
 public:
  Progress(std::FILE* out, bool terminal) : out_(out), terminal_(terminal) {}
  explicit Progress(std::FILE* out);  // asks the system whether it is a terminal
  ~Progress() { end(); }
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void begin(std::size_t total);
  // `work`: it took time; what was found finished does not count into the rate. Safe for concurrent
  // use.
  void done(bool work);
  void set(std::size_t done);  // all work
  void end();                  // leaves the bar behind

 private:
  void show(bool last);

  std::FILE* out_;
  bool terminal_;
  std::mutex mutex_;
  std::size_t total_ = 0, done_ = 0, worked_ = 0, tenths_ = 0;
  std::chrono::steady_clock::time_point started_, shown_;
  bool bar_shown_ = false;
};

}  // namespace mllmsim
