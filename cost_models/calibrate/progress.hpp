// Shows how far a run is, on stderr: a bar with the time left on a terminal, plain lines otherwise
// (one every tenth of the way, so that a batch log stays short).
#pragma once

#include <cstdio>
#include <string>

namespace mllmsim::calibrate {

// "[=======         ] 45 %  12/27  1:05 left  gemm"
std::string progress_line(double fraction, std::size_t done, std::size_t count, double seconds_left,
                          const std::string& label);

class Progress {
 public:
  // estimated_s: of all tasks still to be done.
  Progress(std::FILE* out, bool terminal, std::size_t count, double estimated_s);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  // A task that was estimated to take `estimated_s` is done, `elapsed_s` after the start.
  void done(const std::string& label, double estimated_s, double elapsed_s);
  // Something to say without breaking the bar.
  void note(const std::string& text);

 private:
  std::FILE* out_;
  bool terminal_;
  std::size_t count_;
  double estimated_s_;
  std::size_t done_ = 0;
  double done_s_ = 0;
  int tenths_ = 0;
  bool bar_shown_ = false;
};

}  // namespace mllmsim::calibrate
