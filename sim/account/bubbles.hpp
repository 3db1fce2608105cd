// Why a compute stream idles.
// Every idle nanosecond of a step gets exactly one kind, so that on each device
//   busy + all bubbles = step.
#pragma once

#include <array>
#include <string_view>
#include <vector>

#include "sim/base/enum_names.hpp"
#include "sim/base/units.hpp"

namespace mllmsim {

class Program;
struct Timeline;

enum class BubbleKind : std::uint8_t {
  dp_all_gather,      // waiting for parameters that the distributed optimizer gathers
  dp_reduce_scatter,  // waiting for gradients to be reduced
  pp_warmup,          // before the first computation of the step
  pp_cooldown,        // after the last backward
  pp_other,           // between computations, waiting for a neighbour stage
  tp,                 // waiting for a tensor-parallel collective
  dp_wait,            // waiting for a slower data-parallel replica
  encoder_wait,       // waiting for encoder output that does not come through the pipeline
};
inline constexpr std::size_t kBubbleKinds = 8;
template <>
struct Names<BubbleKind> {
  static constexpr std::array<std::string_view, kBubbleKinds> list{
      "dp_all_gather", "dp_reduce_scatter", "pp_warmup", "pp_cooldown", "pp_other", "tp",
      "dp_wait",       "encoder_wait"};
};

struct Bubbles {
  std::array<Time, kBubbleKinds> times{};

  Time& operator[](BubbleKind k) { return times[static_cast<std::size_t>(k)]; }
  Time operator[](BubbleKind k) const { return times[static_cast<std::size_t>(k)]; }
  Time total() const {
    Time sum{};
    for (Time t : times) sum += t;
    return sum;
  }
};

struct Bubble {
  BubbleKind kind;
  Time start, end;
};

struct DeviceTime {
  Time busy{};
  Bubbles bubbles;
  std::vector<Bubble> gaps;  // in time order, with those of length 0 left out
};

// One entry per device.
std::vector<DeviceTime> account(const Program& program, const Timeline& timeline);

}  // namespace mllmsim
