#include "results/text/figures.hpp"

#include <fmt/format.h>

#include <array>

namespace mllmsim::results {
namespace {

std::string rounded(double value, int digits) {
  int decimals = digits;
  for (double limit = 1; decimals > 0 && value >= limit; limit *= 10) --decimals;
  return fmt::format("{:.{}f}", value, decimals);
}

}  // namespace

std::string gib(Bytes used, Bytes limit) {
  constexpr Bytes kGib{1LL << 30};
  return fmt::format("{:.1f} of {:.1f}", used / kGib, limit / kGib);
}

std::string percent(double share) { return fmt::format("{:.1f}%", 100 * share); }

std::string figure(double value) { return rounded(value, 4); }

std::string money(double value) {
  if (value < 1000) return fmt::format("{:.2f}", value);
  const std::string digits = fmt::format("{:.0f}", value);
  std::string out;
  for (std::size_t i = 0; i < digits.size(); ++i) {
    if (i > 0 && (digits.size() - i) % 3 == 0) out += ',';
    out += digits[i];
  }
  return out;
}

std::string duration(double days) {
  if (days >= 1) return fmt::format("{:.1f} days", days);
  if (days * 24 >= 1) return fmt::format("{:.1f} hours", days * 24);
  if (days * 24 * 60 >= 1) return fmt::format("{:.1f} minutes", days * 24 * 60);
  return fmt::format("{:.1f} seconds", days * 24 * 60 * 60);
}

namespace {

std::string misfits_text(std::size_t n, const char* noun) {
  return fmt::format("{}{} {} not fit in memory", n, noun, n == 1 ? "does" : "do");
}

}  // namespace

std::string points_text(std::size_t fit, std::size_t misfits, std::size_t unplanned) {
  const std::size_t all = fit + misfits + unplanned;
  std::string out = fmt::format("{} {}: {} {}", all, all == 1 ? "point" : "points", fit,
                                fit == 1 ? "fits" : "fit");
  if (misfits > 0) out += ", " + misfits_text(misfits, "");
  if (unplanned > 0) out += fmt::format(", {} cannot be planned", unplanned);
  return out;
}

std::string left_out_text(std::size_t misfits, std::size_t unplanned) {
  const auto noun = [](std::size_t n) { return n == 1 ? " point" : " points"; };
  std::string out;
  if (misfits > 0) out = misfits_text(misfits, noun(misfits));
  if (unplanned > 0)
    out += fmt::format("{}{}{} cannot be planned", out.empty() ? "" : ", ", unplanned,
                       out.empty() ? noun(unplanned) : "");
  return out;
}

std::string count(double value) {
  constexpr std::array<std::pair<double, const char*>, 4> kScales = {
      {{1e12, " T"}, {1e9, " B"}, {1e6, " M"}, {1e3, " k"}}};
  for (const auto& [scale, suffix] : kScales)
    if (value >= scale) return rounded(value / scale, 3) + suffix;
  return fmt::format("{:.0f}", value);
}

}  // namespace mllmsim::results
