// The event queue: plain structs in a binary heap, ordered by (time, phase, transfer).
//
// A transfer has one start, and of its announced ends one counts: so the order is total, and a run
// a function of its input alone, however finely tasks are cut that use no links.
// Phases order what happens at one instant.
#pragma once

#include <algorithm>
#include <vector>

#include "sim/base/units.hpp"

namespace mllmsim {

enum class Phase : std::uint32_t {
  transfer_done,   // links are freed first, so that what starts now sees the true load
  transfer_start,  // then they are loaded
};

struct Event {
  Time time;
  Phase phase;
  std::uint32_t transfer;

  bool operator>(const Event& o) const {
    if (time != o.time) return time > o.time;
    if (phase != o.phase) return phase > o.phase;
    return transfer > o.transfer;
  }
};

class EventQueue {
 public:
  bool empty() const { return heap_.empty(); }
  void push(Time time, Phase phase, std::uint32_t transfer) {
    heap_.push_back({time, phase, transfer});
    std::push_heap(heap_.begin(), heap_.end(), std::greater<>{});
  }
  Event pop() {
    std::pop_heap(heap_.begin(), heap_.end(), std::greater<>{});
    const Event e = heap_.back();
    heap_.pop_back();
    return e;
  }

 private:
  std::vector<Event> heap_;
};

}  // namespace mllmsim
