// How far a long job is, on stderr: a bar with rate and time left on a terminal, otherwise a plain
// line every tenth of the way or half a minute, at most one per second, so that a batch log stays
// short. What cannot be written is lost, without a word: the work goes on.
//
// A job is a number of items, each with a weight (its expected duration, say; 1 if nothing is
// said). The bar shows the share of the weight that is done, and
//
//   time left = weight left * time so far / weight worked so far
#pragma once

#include <chrono>
#include <cstdio>
#include <mutex>
#include <string>
#include <string_view>

namespace mllmsim {

struct ProgressState {
  std::size_t done = 0, total = 0;
  double per_second = 0;    // items; 0 while it is not known, and then nor is the time left
  double seconds_left = 0;  // shown until all is done
  std::string_view unit = "points";
  std::string_view label{};  // what was done last; may be empty
};

// "1234 of 10000 points, 312/s, 0:28 left, label"
std::string progress_text(const ProgressState& state);
// The same behind a bar, "[=====     ]", filled to `fraction`.
std::string progress_bar(double fraction, const ProgressState& state);

class Progress {
 public:
  // `patience`: what is over sooner is not talked about.
  Progress(std::FILE* out, bool terminal, std::chrono::milliseconds patience = {})
      : out_(out), terminal_(terminal), patience_(patience) {}
  explicit Progress(std::FILE* out);  // asks the system whether it is a terminal
  ~Progress() { end(); }
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  // `weight`: of all items together; 0 if each weighs 1.
  void begin(std::size_t total, std::string unit = "points", double weight = 0);
  // `work`: it took time; what was found finished does not count into the rate. Safe for concurrent
  // use, as are the others below.
  void done(bool work);
  void done(double weight, std::string label);  // an item of this weight, all work
  void set(std::size_t done);                   // of items that weigh 1, all work
  void note(const std::string& text);           // a line of its own, above the bar
  void end();                                   // leaves the bar behind

 private:
  void show(bool last);

  std::FILE* out_;
  bool terminal_;
  std::chrono::milliseconds patience_{};
  std::mutex mutex_;
  // Of the job that begin() starts; one bar may serve several jobs, one after the other.
  struct Counts {
    std::size_t total = 0, done = 0, worked = 0, tenths = 0;
    double weight = 0, done_weight = 0, worked_weight = 0;
    std::string unit = {}, label = {};
  };
  Counts job_;
  std::chrono::steady_clock::time_point started_, shown_;
  bool bar_shown_ = false;
};

}  // namespace mllmsim
