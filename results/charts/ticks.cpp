#include "results/charts/ticks.hpp"

#include <fmt/format.h>

#include <cmath>

namespace mllmsim::charts {

std::string tick_text(double value) {
  if (value >= 1e6) return fmt::format("{:.3g} M", value / 1e6);
  return value >= 1e4 ? fmt::format("{:.3g} k", value / 1e3) : fmt::format("{:.4g}", value);
}

std::vector<plot::Tick> even_ticks(plot::Range range, double most) {
  std::vector<plot::Tick> out;
  const double least = (range.high - range.low) / most;  // between two
  if (!(least > 0)) return out;
  const double power = std::pow(10, std::floor(std::log10(least)));
  const double digits = least / power;
  const double step = power * (digits <= 1 ? 1 : digits <= 2 ? 2 : digits <= 5 ? 5 : 10);
  const double first = std::ceil(range.low / step);
  for (double i = first; i * step <= range.high; ++i)
    out.push_back({i * step, tick_text(i * step)});
  return out;
}

std::vector<plot::Tick> log_ticks(plot::Range range) {
  constexpr double kFew = 3;
  const auto [low, high] = range;
  if (high < 5 * low) return even_ticks(range, kFew);
  std::vector<plot::Tick> out;
  for (double power = std::pow(10, std::floor(std::log10(low))); power <= high; power *= 10)
    for (const double digit : {1, 2, 5})
      if (const double at = digit * power;
          at >= low && at <= high && (digit == 1 || high < 100 * low))
        out.push_back({at, tick_text(at)});
  return out.size() > 1 ? out : even_ticks(range, kFew);  // between 21 and 99 only 50 is one
}

}  // namespace mllmsim::charts
