#include "sim/kernel/link_sharing.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>

namespace mllmsim {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kFull = 1.0 + 1e-9;  // loads above 1 by rounding only do not slow anybody

}  // namespace

LinkSharing::LinkSharing(std::vector<BytesPerSecond> bandwidths, const Program& program)
    : program_(program),
      bandwidths_(std::move(bandwidths)),
      load_(bandwidths_.size(), 0.0),
      room_(bandwidths_.size(), 0.0),
      slope_(bandwidths_.size(), 0.0),
      seen_(bandwidths_.size(), 0),
      flows_(program.transfers().size()) {}

std::span<const LinkUse> LinkSharing::uses(TransferId transfer) const {
  if (flows_[transfer.value].duration.value == 0) return {};  // loads nothing
  const Transfer& t = program_.transfers()[transfer.value];
  return std::span(program_.link_uses()).subspan(t.first_use, t.uses);
}

double LinkSharing::need(const Flow& flow, const LinkUse& use) const {
  return (use.bytes / bandwidths_[use.link.value]).value * 1e9 /
         static_cast<double>(flow.duration.value);
}

std::span<const LinkSharing::Completion> LinkSharing::start(TransferId transfer, Time now,
                                                            Time duration) {
  announced_.clear();
  Flow& flow = flows_[transfer.value];
  flow = {static_cast<double>(duration.value), 0, now, duration, Time{-1}};
  bool full = false;
  for (const LinkUse& use : uses(transfer))
    full |= (load_[use.link.value] += need(flow, use)) > kFull;
  active_.push_back(transfer);
  if (full)
    solve(now);
  else
    announce(transfer, now, 1.0);
  return announced_;
}

std::span<const LinkSharing::Completion> LinkSharing::finish(TransferId transfer, Time now) {
  announced_.clear();
  Flow& flow = flows_[transfer.value];
  bool was_full = false;
  for (const LinkUse& use : uses(transfer)) {
    double& load = load_[use.link.value];
    was_full |= load > kFull;
    load -= need(flow, use);
  }
  flow.rate = 0;
  active_.erase(std::find(active_.begin(), active_.end(), transfer));
  if (active_.empty()) std::fill(load_.begin(), load_.end(), 0.0);  // rounding must not build up
  if (was_full) solve(now);
  return announced_;
}

// Brings the flow's remaining work up to date and sets its rate and completion time from here.
void LinkSharing::announce(TransferId transfer, Time now, double rate) {
  Flow& flow = flows_[transfer.value];
  if (flow.rate == rate) return;
  flow.remaining -= flow.rate * static_cast<double>((now - flow.since).value);
  flow.since = now;
  flow.rate = rate;
  const double left = std::max(0.0, std::ceil(flow.remaining / rate - 1e-6));
  flow.completion = now + Time{static_cast<std::int64_t>(left)};
  announced_.push_back({transfer, flow.completion});
}

void LinkSharing::solve(Time now) {
  std::vector<double> rates(active_.size(), 1.0);
  fill(rates);
  for (std::size_t i = 0; i < active_.size(); ++i) announce(active_[i], now, rates[i]);
}

// Progressive filling. Flows that reach their full speed, and flows on a link that is full, stay
// where they are; the others grow on.
void LinkSharing::fill(std::vector<double>& rates) {
  std::vector<std::size_t> growing(active_.size());
  std::iota(growing.begin(), growing.end(), 0);
  std::vector<double> peak(active_.size(), 0);  // the flow's largest need of any link
  ++fills_;
  links_.clear();
  for (std::size_t i : growing)
    for (const LinkUse& use : uses(active_[i])) {
      peak[i] = std::max(peak[i], need(flows_[active_[i].value], use));
      if (std::exchange(seen_[use.link.value], fills_) != fills_) links_.push_back(use.link.value);
    }

  for (const std::uint32_t l : links_) room_[l] = 1;
  while (!growing.empty()) {
    // A flow grows as level / peak, so that at its tightest link it has `level` of the bandwidth.
    for (const std::uint32_t l : links_) slope_[l] = 0;
    double level = kInfinity;
    for (std::size_t i : growing) {
      level = std::min(level, peak[i]);
      for (const LinkUse& use : uses(active_[i]))
        slope_[use.link.value] += need(flows_[active_[i].value], use) / peak[i];
    }
    for (const std::uint32_t l : links_)
      if (slope_[l] > 0) level = std::min(level, std::max(0.0, room_[l]) / slope_[l]);
    const auto stays = [&](std::size_t i) {
      if (peak[i] <= level * kFull) return true;
      const auto links = uses(active_[i]);
      return std::any_of(links.begin(), links.end(), [&](const LinkUse& use) {
        return level * slope_[use.link.value] * kFull >= room_[use.link.value];
      });
    };
    const auto still = std::stable_partition(growing.begin(), growing.end(),
                                             [&](std::size_t i) { return !stays(i); });
    for (auto it = still; it != growing.end(); ++it) {
      rates[*it] = peak[*it] <= level * kFull ? 1.0 : level / peak[*it];
      for (const LinkUse& use : uses(active_[*it]))
        room_[use.link.value] -= rates[*it] * need(flows_[active_[*it].value], use);
    }
    growing.erase(still, growing.end());
  }
}

}  // namespace mllmsim
