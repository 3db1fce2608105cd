#include "sim/base/progress.hpp"

#include <fmt/core.h>
#include <unistd.h>

#include <cmath>

namespace mllmsim {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr auto kBarInterval = milliseconds(100);
constexpr auto kShortestInterval = std::chrono::seconds(1),
               kLineInterval = std::chrono::seconds(30);

double seconds(Clock::duration d) { return std::chrono::duration<double>(d).count(); }

// "0:28", "2:01:05"
std::string clock_text(double s) {
  const long long all = std::llround(std::min(s, 3.6e8));
  const long long hours = all / 3600, minutes = all / 60 % 60;
  return hours > 0 ? fmt::format("{}:{:02}:{:02}", hours, minutes, all % 60)
                   : fmt::format("{}:{:02}", minutes, all % 60);
}

}  // namespace

std::string progress_text(std::size_t done, std::size_t total, double per_second) {
  std::string out = fmt::format("{} of {} points", done, total);
  if (per_second > 0) {
    out += fmt::format(", {:.{}f}/s", per_second, per_second < 10 ? 1 : 0);
    if (done < total)
      out += fmt::format(", {} left", clock_text(static_cast<double>(total - done) / per_second));
  }
  return out;
}

std::string progress_bar(std::size_t done, std::size_t total, double per_second) {
  constexpr std::size_t kWidth = 30;
  const std::size_t filled = total > 0 ? kWidth * done / total : kWidth;
  return fmt::format("[{:=<{}}{: <{}}] {}", "", filled, "", kWidth - filled,
                     progress_text(done, total, per_second));
}

Progress::Progress(std::FILE* out) : Progress(out, ::isatty(::fileno(out)) == 1) {}

void Progress::begin(std::size_t total) {
  total_ = total;
  started_ = shown_ = Clock::now();
}

void Progress::done(bool work) {
  const std::lock_guard lock(mutex_);
  ++done_;
  worked_ += work;
  show(false);
}

void Progress::set(std::size_t done) {
  const std::lock_guard lock(mutex_);
  if (done <= done_) return;
  worked_ += done - done_;
  done_ = done;
  show(false);
}

void Progress::end() {
  const std::lock_guard lock(mutex_);
  if (bar_shown_) {
    show(true);
    std::fputs("\n", out_);
  }
  bar_shown_ = false;
}

void Progress::show(bool last) {
  const auto now = Clock::now();
  const double elapsed = seconds(now - started_);
  const double rate = worked_ > 0 && elapsed > 0 ? static_cast<double>(worked_) / elapsed : 0;
  if (terminal_) {
    if (!last && bar_shown_ && now - shown_ < kBarInterval) return;
    fmt::print(out_, "\r{}\033[K", progress_bar(done_, total_, rate));
    std::fflush(out_);
    bar_shown_ = true;
  } else {
    const std::size_t tenths = total_ > 0 ? 10 * done_ / total_ : 10;
    const auto since = now - shown_;
    const bool due = tenths != tenths_ ? since > kShortestInterval : since > kLineInterval;
    if (!due && done_ < total_) return;
    tenths_ = tenths;
    fmt::print(out_, "{}\n", progress_text(done_, total_, rate));
    std::fflush(out_);
  }
  shown_ = now;
}

}  // namespace mllmsim
