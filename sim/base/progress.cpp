#include "sim/base/progress.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>

#include "sim/base/text.hpp"

namespace mllmsim {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr auto kBarInterval = milliseconds(100);
constexpr auto kShortestInterval = std::chrono::seconds(1),
               kLineInterval = std::chrono::seconds(30);

// Talk that cannot be written (a full disk, a closed stream) is lost, and the work goes on.
void write(std::FILE* out, const std::string& text) {
  std::fwrite(text.data(), 1, text.size(), out);
  std::fflush(out);
}

double seconds(Clock::duration d) { return std::chrono::duration<double>(d).count(); }

// "0:28", "2:01:05"
std::string clock_text(double s) {
  const long long all = std::llround(std::min(s, 3.6e8));
  const long long hours = all / 3600, minutes = all / 60 % 60;
  return hours > 0 ? fmt::format("{}:{:02}:{:02}", hours, minutes, all % 60)
                   : fmt::format("{}:{:02}", minutes, all % 60);
}

}  // namespace

std::string progress_text(const ProgressState& state) {
  std::string out = fmt::format("{} of {} {}", state.done, state.total, state.unit);
  if (state.per_second > 0) {
    out += fmt::format(", {:.{}f}/s", state.per_second, state.per_second < 10 ? 1 : 0);
    if (state.done < state.total) out += fmt::format(", {} left", clock_text(state.seconds_left));
  }
  if (!state.label.empty()) out += ", " + printable(state.label);
  return out;
}

std::string progress_bar(double fraction, const ProgressState& state) {
  constexpr int kBarWidth = 30;
  const int filled = static_cast<int>(kBarWidth * fraction);
  return fmt::format("[{:=<{}}{: <{}}] {}", "", filled, "", kBarWidth - filled,
                     progress_text(state));
}

Progress::Progress(std::FILE* out) : Progress(out, ::isatty(::fileno(out)) == 1) {}

void Progress::begin(std::size_t total, std::string unit, double weight) {
  job_ = {.total = total,
          .weight = weight > 0 ? weight : static_cast<double>(total),
          .unit = std::move(unit)};
  started_ = shown_ = Clock::now();
}

void Progress::done(bool work) {
  const std::lock_guard lock(mutex_);
  ++job_.done;
  ++job_.done_weight;
  job_.worked += work;
  job_.worked_weight += work;
  show(false);
}

void Progress::done(double weight, std::string label) {
  const std::lock_guard lock(mutex_);
  ++job_.done;
  ++job_.worked;
  job_.done_weight += weight;
  job_.worked_weight += weight;
  job_.label = std::move(label);
  show(false);
}

void Progress::set(std::size_t done) {
  const std::lock_guard lock(mutex_);
  if (done <= job_.done) return;
  job_.worked += done - job_.done;
  job_.worked_weight += static_cast<double>(done - job_.done);
  job_.done = done;
  job_.done_weight = static_cast<double>(done);
  show(false);
}

void Progress::note(const std::string& text) {
  const std::lock_guard lock(mutex_);
  write(out_, (bar_shown_ ? "\r\033[K" : "") + printable(text) + "\n");
  bar_shown_ = false;
}

void Progress::end() {
  const std::lock_guard lock(mutex_);
  if (bar_shown_) {
    show(true);
    write(out_, "\n");
  }
  bar_shown_ = false;
}

void Progress::show(bool last) {
  const auto now = Clock::now();
  if (now - started_ < patience_) return;
  const double elapsed = seconds(now - started_);
  const double fraction = job_.weight > 0 ? std::min(1.0, job_.done_weight / job_.weight) : 1;
  ProgressState state{job_.done, job_.total, 0, 0, job_.unit, job_.label};
  if (job_.worked_weight > 0 && elapsed > 0) {
    state.per_second = static_cast<double>(job_.worked) / elapsed;
    state.seconds_left =
        std::max(0.0, job_.weight - job_.done_weight) * elapsed / job_.worked_weight;
  }
  if (terminal_) {
    if (!last && bar_shown_ && now - shown_ < kBarInterval) return;
    write(out_, "\r" + progress_bar(fraction, state) + "\033[K");
    bar_shown_ = true;
  } else {
    const auto tenths = static_cast<std::size_t>(10 * fraction);
    const auto since = now - shown_;
    const bool due = tenths != job_.tenths ? since > kShortestInterval : since > kLineInterval;
    if (!due && job_.done < job_.total) return;
    job_.tenths = tenths;
    write(out_, progress_text(state) + "\n");
  }
  shown_ = now;
}

}  // namespace mllmsim
