#include "cost_models/calibrate/progress.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

namespace mllmsim::calibrate {

std::string progress_line(double fraction, std::size_t done, std::size_t count, double seconds_left,
                          const std::string& label) {
  constexpr int kWidth = 24;
  const int filled = static_cast<int>(fraction * kWidth);
  const long left = std::lround(seconds_left);
  return fmt::format("[{:=<{}}{: <{}}] {:3.0f} %  {}/{}  {}:{:02} left  {}", "", filled, "",
                     kWidth - filled, fraction * 100, done, count, left / 60, left % 60, label);
}

Progress::Progress(std::FILE* out, bool terminal, std::size_t count, double estimated_s)
    : out_(out), terminal_(terminal), count_(count), estimated_s_(estimated_s) {}

Progress::~Progress() {
  if (bar_shown_) std::fputs("\n", out_);
}

void Progress::done(const std::string& label, double estimated_s, double elapsed_s) {
  ++done_;
  done_s_ += estimated_s;
  const double fraction = estimated_s_ > 0 ? std::min(1.0, done_s_ / estimated_s_) : 1.0;
  // The estimate corrected by how it has held so far.
  const double left = done_s_ > 0 ? elapsed_s / done_s_ * std::max(0.0, estimated_s_ - done_s_) : 0;
  const std::string line = progress_line(fraction, done_, count_, left, label);
  if (terminal_) {
    fmt::print(out_, "\r{}\033[K", line);
    std::fflush(out_);
    bar_shown_ = true;
  } else if (static_cast<int>(fraction * 10) > tenths_ || done_ == count_) {
    tenths_ = static_cast<int>(fraction * 10);
    fmt::print(out_, "{}\n", line);
  }
}

void Progress::note(const std::string& text) {
  fmt::print(out_, "{}{}\n", terminal_ ? "\r\033[K" : "", text);
  bar_shown_ = false;
}

}  // namespace mllmsim::calibrate
