// The event kernel as one would write it first, for comparison: every end of a task or transfer is
// an event, every event solves the rates of all flows on all links of the cluster. Slow, and short
// enough to be believed.
#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

#include "sim/kernel/simulation.hpp"

namespace mllmsim {

class PlainSimulation {
 public:
  PlainSimulation(const Program& program, const std::vector<BytesPerSecond>& bandwidths)
      : program_(program),
        bandwidths_(bandwidths),
        started_(program.tasks().size()),
        flows_(program.transfers().size()) {
    timeline_.ready.assign(program.tasks().size(), Time{-1});
    timeline_.start = timeline_.end = timeline_.ready;
  }

  Timeline run() {
    for (start_what_can(); next_end() != kNever; start_what_can()) {
      now_ = next_end();
      for (std::uint32_t t = 0; t < started_.size(); ++t)
        if (started_[t] && timeline_.end[t] == kNever && end_of(t) == now_) timeline_.end[t] = now_;
      timeline_.span = now_;
    }
    return timeline_;
  }

 private:
  static constexpr Time kNever{-1};
  struct Flow {
    bool active = false;
    double remaining = 0, rate = 0;
    Time since{}, end{};
  };

  bool done(TaskId task) const { return timeline_.end[task.value] != kNever; }

  Time end_of(std::uint32_t t) const {
    const Task& task = program_.tasks()[t];
    return task.transfer ? flows_[task.transfer.value].end : timeline_.start[t] + task.duration;
  }

  Time next_end() const {
    Time next = kNever;
    for (std::uint32_t t = 0; t < started_.size(); ++t)
      if (started_[t] && timeline_.end[t] == kNever && (next == kNever || end_of(t) < next))
        next = end_of(t);
    return next;
  }

  void start_what_can() {
    std::vector<bool> waits(started_.size(), false);
    for (const Program::Edge& e : program_.dependencies())
      if (!done(e.before)) waits[e.after.value] = true;
    for (std::uint32_t t = 0; t < started_.size(); ++t)
      if (const TaskId next = program_.next_on_stream({t}); next && !done({t}))
        waits[next.value] = true;
    std::vector<std::uint32_t> arrived(flows_.size(), 0);
    for (std::uint32_t t = 0; t < started_.size(); ++t) {
      if (waits[t]) continue;
      if (timeline_.ready[t] == kNever) timeline_.ready[t] = now_;
      const Task& task = program_.tasks()[t];
      if (!task.transfer && !started_[t]) start(t);
      if (task.transfer) ++arrived[task.transfer.value];
    }
    for (Flow& flow : flows_)
      if (flow.active && flow.end <= now_) flow.active = false;
    for (std::uint32_t t = 0; t < started_.size(); ++t) {
      const TransferId transfer = program_.tasks()[t].transfer;
      if (!transfer || started_[t]) continue;
      if (arrived[transfer.value] < program_.transfers()[transfer.value].participants) continue;
      start(t);
      const Time duration = program_.tasks()[t].duration;
      flows_[transfer.value] = {duration.value > 0, static_cast<double>(duration.value), 0, now_,
                                now_ + duration};
    }
    solve();
  }

  void start(std::uint32_t t) {
    started_[t] = true;
    timeline_.start[t] = now_;
  }

  double need(std::uint32_t transfer, const LinkUse& use) const {
    const Transfer& t = program_.transfers()[transfer];
    return (scaled(use.bytes, t.factor) / bandwidths_[use.link.value]).value * 1e9 /
           static_cast<double>(program_.tasks()[t.last_member.value].duration.value);
  }
  std::span<const LinkUse> uses(std::uint32_t transfer) const {
    const RouteId route = program_.transfers()[transfer].route;
    return route ? program_.uses(route) : std::span<const LinkUse>{};
  }

  // All shares grow together; who is at full speed or on a full link stays.
  void solve() {
    std::vector<double> used(bandwidths_.size(), 0), rate(flows_.size(), 0);
    std::vector<std::uint32_t> growing;
    for (std::uint32_t f = 0; f < flows_.size(); ++f)
      if (flows_[f].active) growing.push_back(f);
    const auto peak = [&](std::uint32_t f) {
      double most = 0;
      for (const LinkUse& use : uses(f)) most = std::max(most, need(f, use));
      return most;
    };
    std::erase_if(growing, [&](std::uint32_t f) { return peak(f) == 0 && (rate[f] = 1); });
    while (!growing.empty()) {
      std::vector<double> slope(bandwidths_.size(), 0);
      double level = 1e300;
      for (std::uint32_t f : growing) {
        level = std::min(level, peak(f));
        for (const LinkUse& use : uses(f)) slope[use.link.value] += need(f, use) / peak(f);
      }
      for (std::size_t l = 0; l < slope.size(); ++l)
        if (slope[l] > 0) level = std::min(level, std::max(0.0, 1 - used[l]) / slope[l]);
      std::vector<std::uint32_t> stay;
      std::erase_if(growing, [&](std::uint32_t f) {
        const auto links = uses(f);
        const bool stays = peak(f) <= level * (1 + 1e-9) ||
                           std::any_of(links.begin(), links.end(), [&](const LinkUse& use) {
                             const std::size_t l = use.link.value;
                             return level * slope[l] * (1 + 1e-9) >= 1 - used[l];
                           });
        if (stays) stay.push_back(f);
        return stays;
      });
      for (std::uint32_t f : stay) {
        rate[f] = std::min(1.0, level / peak(f));
        for (const LinkUse& use : uses(f)) used[use.link.value] += rate[f] * need(f, use);
      }
    }
    for (std::uint32_t f = 0; f < flows_.size(); ++f) {
      Flow& flow = flows_[f];
      if (!flow.active) continue;
      if (std::abs(flow.rate - rate[f]) < 1e-9) continue;
      flow.remaining -= flow.rate * static_cast<double>((now_ - flow.since).value);
      flow.since = now_;
      flow.rate = rate[f];
      flow.end = now_ + Time{static_cast<std::int64_t>(
                            std::max(0.0, std::ceil(flow.remaining / flow.rate - 1e-6)))};
    }
  }

  const Program& program_;
  const std::vector<BytesPerSecond>& bandwidths_;
  std::vector<bool> started_;
  std::vector<Flow> flows_;  // by transfer
  Time now_{0};
  Timeline timeline_;
};

}  // namespace mllmsim
