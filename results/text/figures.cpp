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
  return fmt::format("{:.1f} minutes", days * 24 * 60);
}

std::string count(double value) {
  constexpr std::array<std::pair<double, const char*>, 4> kScales = {
      {{1e12, " T"}, {1e9, " B"}, {1e6, " M"}, {1e3, " k"}}};
  for (const auto& [scale, suffix] : kScales)
    if (value >= scale) return rounded(value / scale, 3) + suffix;
  return fmt::format("{:.0f}", value);
}

}  // namespace mllmsim::results
