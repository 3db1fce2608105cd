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
//
// What a change costs:
//   - links are those of the program's routes, not of the cluster, and of links that the same
//     routes use only those are kept that can be the tightest (route_links.hpp);
//   - a link is contended if its flows need more than all of it at full speed. Only flows that
//     contended links join to the changed one can have another rate, so only they are solved.
#pragma once

#include <span>
#include <vector>

#include "sim/kernel/program.hpp"
#include "sim/kernel/route_links.hpp"
#include "sim/world/links.hpp"

namespace mllmsim {

class LinkSharing {
 public:
  // routes: of the program; both are referred to. late: starts and ends may come so, see
  // in_order().
  LinkSharing(const RouteLinks& routes, const Program& program, bool late = false);

  // Whether the transfer uses links at all; others need not be started.
  bool loads(TransferId transfer, Time duration) const {
    return duration.value > 0 && program_.transfers()[transfer.value].route;
  }

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
    const std::uint32_t flow = flow_of_[transfer.value];
    return flow != kNoFlow && flows_[flow].completion == time;
  }

  // Starts and ends may come late, when others have come that are later. As long as this is true,
  // all was as if they had come in the order of time: a late flow had its links for itself, or
  // shared links that nobody has come to or left since, and that are wide enough for all.
  bool in_order() const { return in_order_; }

  struct Statistics {
    std::uint64_t solved = 0;        // times that rates were solved
    std::uint64_t solved_flows = 0;  // flows in all of them
  };
  const Statistics& statistics() const { return statistics_; }

 private:
  static constexpr std::uint32_t kNoFlow = UINT32_MAX;

  // A flow on a link.
  struct Use {
    std::uint32_t link = 0;
    std::uint32_t place = 0;  // in the link's list of flows
    double need = 0;          // share of the link at full speed
  };
  struct Flow {
    TransferId transfer;
    std::uint32_t component = 0;  // the solution that took it last
    Time began{};
    Time until{};          // it must end: if it came late, others have had its links then
    double remaining = 0;  // nanoseconds of work at rate 1
    double rate = 0;       // 0: new
    double peak = 0;       // the largest need
    Time since{};          // when `remaining` was valid
    Time completion{-1};
    std::vector<Use> uses;
  };
  struct Busy {  // some flow was there
    Time from, to;
  };
  struct Link {
    double load = 0;  // if all its flows ran at rate 1
    double room = 0, slope = 0;
    std::uint32_t component = 0;
    Time changed{};  // when a flow came or went last
    Time busy_since{};
    std::vector<Busy> busy;  // before that, in order
    struct Member {
      std::uint32_t flow = 0, use = 0;
    };
    std::vector<Member> flows;
  };
  bool contended(const Link& link) const;
  std::uint32_t new_flow(TransferId transfer, Time now, Time duration);
  Time free_until(TransferId transfer, Time now);
  void check_wide(const Flow& flow, Time now);
  void keep_busy(Link& link, Time now);
  void remove(Flow& flow, Time now);
  void announce(Flow& flow, Time now, double rate);
  void take_flows_of(std::uint32_t link);
  void solve(Time now);
  double rate_alone(const Flow& flow) const;
  void fill();

  const Program& program_;
  const RouteLinks& routes_;
  std::vector<Link> links_;
  std::vector<Flow> flows_;  // places of ended flows are used again
  std::vector<std::uint32_t> free_flows_;
  std::vector<std::uint32_t> flow_of_;  // by transfer
  bool late_ = false;
  Time latest_{};
  bool in_order_ = true;
  // The flows and contended links being solved.
  std::uint32_t component_ = 0;
  std::vector<std::uint32_t> solved_, growing_;
  std::vector<std::uint32_t> solved_links_;
  std::vector<double> rates_;  // by place in solved_
  std::vector<Completion> announced_;
  Statistics statistics_;
};

}  // namespace mllmsim
