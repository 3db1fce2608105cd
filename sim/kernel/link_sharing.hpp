// Transfers that share links, as fluid flows with max-min fair rates.
//
// A flow alone progresses at rate 1 and takes its own duration d. At rate x it loads link l with
// x * u(l), where
//   u(l) = bytes on l / (d * bandwidth of l)      the share of the link it needs at full speed.
// What flows are given equally is not x but s, the share each has of its own tightest link:
//   s = x * max over l of u(l),
// and the s are the max-min fair solution of
//   sum over flows of x * u(l) <= 1   for every link l,
//   0 < x <= 1                        for every flow:
// all s grow together until a flow is at full speed or a link is full, whose flows stay there; the
// others go on (progressive filling). So two flows that could each fill a link get half of it, and
// one that needs less than its equal share gets what it needs. Most of the time no link is full;
// then nothing is solved and all rates are 1.
#pragma once

#include <span>
#include <vector>

#include "sim/kernel/program.hpp"
#include "sim/world/links.hpp"

namespace mllmsim {

class LinkSharing {
 public:
  LinkSharing(std::vector<BytesPerSecond> bandwidths, const Program& program);

  struct Completion {
    TransferId transfer;
    Time time;
  };

  // Flows whose completion time is new since the last call:
  // the started one, and those whose rate changed.
  std::span<const Completion> start(TransferId transfer, Time now, Time duration);
  std::span<const Completion> finish(TransferId transfer, Time now);

  // Whether `time` is still when the flow completes; earlier announcements are void.
  bool current(TransferId transfer, Time time) const {
    return flows_[transfer.value].completion == time;
  }

 private:
  struct Flow {
    double remaining = 0;  // nanoseconds of work at rate 1
    double rate = 0;       // 0: not active
    Time since{};          // when `remaining` was valid
    Time duration{};
    Time completion{-1};
  };
  double need(const Flow& flow, const LinkUse& use) const;
  std::span<const LinkUse> uses(TransferId transfer) const;
  void announce(TransferId transfer, Time now, double rate);
  void solve(Time now);
  void fill(std::vector<double>& rates);

  const Program& program_;
  std::vector<BytesPerSecond> bandwidths_;
  std::vector<double> load_;  // by link, if all its flows ran at rate 1
  // Scratch of fill().
  std::vector<double> room_, slope_;
  std::vector<std::uint32_t> links_, seen_;  // links of active flows; the fill that saw each link
  std::uint32_t fills_ = 0;
  std::vector<Flow> flows_;
  std::vector<TransferId> active_;
  std::vector<Completion> announced_;
};

}  // namespace mllmsim
