#include "results/rerun/differences.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace mllmsim::rerun {
namespace {

bool same(double a, double b) { return a == b || (std::isnan(a) && std::isnan(b)); }
template <class T>
bool same(const T& a, const T& b) {
  return a == b;
}

// One value against another; nothing if they are no numbers.
std::optional<double> share(double a, double b) {
  const double largest = std::max(std::abs(a), std::abs(b));
  return largest > 0 ? std::abs(a - b) / largest : 0;
}
std::optional<double> share(std::int64_t a, std::int64_t b) {
  return share(static_cast<double>(a), static_cast<double>(b));
}
std::optional<double> share(bool, bool) { return std::nullopt; }
std::optional<double> share(const std::string&, const std::string&) { return std::nullopt; }

template <class Values>
void compare(const Values& before, const Values& now, Difference& out) {
  for (std::size_t i = 0; i < before.size(); ++i) {
    const auto& a = before[i];
    const auto& b = now[i];
    if (same(a, b)) continue;
    if (out.rows++ == 0) {
      out.before = fmt::format("{}", a);
      out.now = fmt::format("{}", b);
    }
    if (const std::optional<double> one = share(a, b))
      out.share = std::max(out.share.value_or(0), *one);
  }
}

}  // namespace

std::vector<Difference> differences(const std::string& name, const tables::Table& before,
                                    const tables::Table& now) {
  if (before.rows() != now.rows())
    return {{name,
             "",
             std::max(before.rows(), now.rows()) - std::min(before.rows(), now.rows()),
             fmt::format("{} rows", before.rows()),
             fmt::format("{} rows", now.rows()),
             {}}};
  std::vector<Difference> out;
  for (const auto& [column, values] : before.columns) {
    Difference found{name, column, 0, "", "", {}};
    const tables::Column* other = now.find(column);
    if (other && other->index() == values.index())
      std::visit(
          [&](const auto& own) {
            compare(own, std::get<std::remove_cvref_t<decltype(own)>>(*other), found);
          },
          values);
    else
      found = {name, column, before.rows(), "a column", other ? "of another type" : "", {}};
    if (found.rows > 0) out.push_back(std::move(found));
  }
  for (const auto& [column, values] : now.columns)
    if (!before.find(column)) out.push_back({name, column, now.rows(), "", "a column", {}});
  return out;
}

}  // namespace mllmsim::rerun
