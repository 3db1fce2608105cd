#include "sim/kernel/link_sharing.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

namespace mllmsim {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr Time kForever{std::numeric_limits<std::int64_t>::max()};
constexpr double kFull = 1.0 + 1e-9;  // loads above 1 by rounding only do not slow anybody

}  // namespace

LinkSharing::LinkSharing(const RouteLinks& routes, const Program& program, bool late)
    : program_(program), routes_(routes), links_(routes.links()), late_(late) {
  if (routes_.links() > 0) flow_of_.assign(program.transfers().size(), kNoFlow);
}

bool LinkSharing::contended(const Link& link) const { return link.load > kFull; }

std::uint32_t LinkSharing::new_flow(TransferId transfer, Time now, Time duration) {
  std::uint32_t id = static_cast<std::uint32_t>(flows_.size());
  if (free_flows_.empty()) {
    flows_.emplace_back();
  } else {
    id = free_flows_.back();
    free_flows_.pop_back();
  }
  flow_of_[transfer.value] = id;
  Flow& flow = flows_[id];
  flow.transfer = transfer;
  flow.remaining = static_cast<double>(duration.value);
  flow.rate = flow.peak = 0;
  flow.since = flow.began = now;
  flow.completion = Time{-1};
  const Transfer& t = program_.transfers()[transfer.value];
  for (const RouteLinks::Use& use : routes_.of(t.route)) {
    Link& link = links_[use.link];
    const double need = (scaled(use.bytes, t.factor) / use.bandwidth).value * 1e9 /
                        static_cast<double>(duration.value);
    flow.peak = std::max(flow.peak, need);
    link.load += need;
    if (link.flows.empty()) link.busy_since = now;
    link.changed = now;
    link.flows.push_back({id, static_cast<std::uint32_t>(flow.uses.size())});
    flow.uses.push_back({use.link, static_cast<std::uint32_t>(link.flows.size() - 1), need});
  }
  return id;
}

// When others have had one of its links, if it comes late.
Time LinkSharing::free_until(TransferId transfer, Time now) {
  Time until = kForever;
  if (now >= latest_) return until;
  for (const RouteLinks::Use& use : routes_.of(program_.transfers()[transfer.value].route)) {
    const Link& link = links_[use.link];
    if (!link.flows.empty()) {
      in_order_ &= link.changed <= now;
      continue;
    }
    const auto next = std::ranges::upper_bound(link.busy, now, {}, &Busy::to);
    if (next == link.busy.end()) continue;
    in_order_ &= next->from >= now;
    until = std::min(until, next->from);
  }
  return until;
}

// Of a late one: no others are slower while it is there.
void LinkSharing::check_wide(const Flow& flow, Time now) {
  if (now >= latest_) return;
  for (const Use& use : flow.uses)
    if (const Link& link = links_[use.link]; link.flows.size() > 1 && contended(link))
      in_order_ = false;
}

void LinkSharing::keep_busy(Link& link, Time now) {
  const auto behind = std::ranges::upper_bound(link.busy, now, {}, &Busy::to);
  link.busy.insert(behind, {link.busy_since, now});
}

void LinkSharing::remove(Flow& flow, Time now) {
  for (const Use& use : flow.uses) {
    Link& link = links_[use.link];
    link.changed = now;
    link.load -= use.need;
    const Link::Member moved = link.flows.back();
    link.flows[use.place] = moved;
    flows_[moved.flow].uses[moved.use].place = use.place;
    link.flows.pop_back();
    if (!link.flows.empty()) continue;
    link.load = 0;  // rounding must not build up
    if (late_) keep_busy(link, now);
  }
  free_flows_.push_back(std::exchange(flow_of_[flow.transfer.value], kNoFlow));
  flow.uses.clear();
}

std::span<const LinkSharing::Completion> LinkSharing::start(TransferId transfer, Time now,
                                                            Time duration) {
  announced_.clear();
  const Time until = free_until(transfer, now);
  const std::uint32_t id = new_flow(transfer, now, duration);
  flows_[id].until = until;
  check_wide(flows_[id], now);
  latest_ = std::max(latest_, now);
  solved_.clear();
  solved_links_.clear();
  ++component_;
  for (const Use& use : flows_[id].uses)
    if (contended(links_[use.link])) take_flows_of(use.link);
  if (solved_.empty())
    announce(flows_[id], now, 1.0);
  else
    solve(now);
  return announced_;
}

std::span<const LinkSharing::Completion> LinkSharing::finish(TransferId transfer, Time now) {
  announced_.clear();
  Flow& flow = flows_[flow_of_[transfer.value]];
  solved_.clear();
  solved_links_.clear();
  ++component_;
  for (const Use& use : flow.uses)
    if (contended(links_[use.link])) take_flows_of(use.link);
  std::erase(solved_, flow_of_[transfer.value]);
  check_wide(flow, now);
  in_order_ &= now <= flow.until;
  remove(flow, now);
  latest_ = std::max(latest_, now);
  if (!solved_.empty()) solve(now);
  return announced_;
}

// Adds the link and its flows to what is solved next.
void LinkSharing::take_flows_of(std::uint32_t link) {
  if (std::exchange(links_[link].component, component_) == component_) return;
  solved_links_.push_back(link);
  for (const Link::Member& member : links_[link].flows)
    if (std::exchange(flows_[member.flow].component, component_) != component_)
      solved_.push_back(member.flow);
}

// Brings the flow's remaining work up to date and sets its rate and completion time from here.
void LinkSharing::announce(Flow& flow, Time now, double rate) {
  if (flow.rate == rate) return;
  flow.remaining -= flow.rate * static_cast<double>((now - flow.since).value);
  flow.since = now;
  flow.rate = rate;
  const double left = std::max(0.0, std::ceil(flow.remaining / rate - 1e-6));
  flow.completion = now + Time{static_cast<std::int64_t>(left)};
  announced_.push_back({flow.transfer, flow.completion});
}

// What was taken, and all that contended links join to it.
void LinkSharing::solve(Time now) {
  for (std::size_t i = 0; i < solved_.size(); ++i)
    for (const Use& use : flows_[solved_[i]].uses)
      if (contended(links_[use.link])) take_flows_of(use.link);
  if (solved_.size() == 1) {
    Flow& flow = flows_[solved_.front()];
    announce(flow, now, rate_alone(flow));
    ++statistics_.solved;
    ++statistics_.solved_flows;
    return;
  }
  // In the order they started, whatever the order of lists: sums round the same every time.
  std::ranges::sort(solved_, {}, [&](std::uint32_t f) {
    return std::pair(flows_[f].began, flows_[f].transfer.value);
  });
  fill();
  for (std::size_t i = 0; i < solved_.size(); ++i) announce(flows_[solved_[i]], now, rates_[i]);
  ++statistics_.solved;
  statistics_.solved_flows += solved_.size();
}

// What fill() gives a flow that has its contended links for itself.
double LinkSharing::rate_alone(const Flow& flow) const {
  double level = flow.peak;
  for (const Use& use : flow.uses)
    if (links_[use.link].component == component_)
      level = std::min(level, 1 / (use.need / flow.peak));
  return flow.peak <= level * kFull ? 1.0 : level / flow.peak;
}

// Progressive filling. Flows that reach their full speed, and flows on a link that is full, stay
// where they are; the others grow on.
void LinkSharing::fill() {
  rates_.assign(solved_.size(), 1.0);
  growing_.resize(solved_.size());
  for (std::uint32_t i = 0; i < growing_.size(); ++i) growing_[i] = i;
  for (const std::uint32_t l : solved_links_) links_[l].room = 1;
  const auto solved_uses = [&](const Flow& flow, const auto& take) {
    for (const Use& use : flow.uses)
      if (Link& link = links_[use.link]; link.component == component_) take(use, link);
  };
  while (!growing_.empty()) {
    // A flow grows as level / peak, so that at its tightest link it has `level` of the bandwidth.
    for (const std::uint32_t l : solved_links_) links_[l].slope = 0;
    double level = kInfinity;
    for (const std::uint32_t i : growing_) {
      const Flow& flow = flows_[solved_[i]];
      level = std::min(level, flow.peak);
      solved_uses(flow, [&](const Use& use, Link& link) { link.slope += use.need / flow.peak; });
    }
    for (const std::uint32_t l : solved_links_)
      if (links_[l].slope > 0)
        level = std::min(level, std::max(0.0, links_[l].room) / links_[l].slope);
    const auto stays = [&](std::uint32_t i) {
      const Flow& flow = flows_[solved_[i]];
      bool full = flow.peak <= level * kFull;
      solved_uses(flow, [&](const Use&, const Link& link) {
        full |= level * link.slope * kFull >= link.room;
      });
      return full;
    };
    const auto still = std::stable_partition(growing_.begin(), growing_.end(),
                                             [&](std::uint32_t i) { return !stays(i); });
    for (auto it = still; it != growing_.end(); ++it) {
      const Flow& flow = flows_[solved_[*it]];
      rates_[*it] = flow.peak <= level * kFull ? 1.0 : level / flow.peak;
      solved_uses(flow, [&](const Use& use, Link& link) { link.room -= rates_[*it] * use.need; });
    }
    growing_.erase(still, growing_.end());
  }
}

}  // namespace mllmsim
