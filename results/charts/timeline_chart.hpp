// Pictures of one step: who does what when, where time is lost, how full memory is. Several runs
// are drawn one above the other on the same axis. All are plain charts (plot/chart.hpp).
#pragma once

#include <span>

#include "results/charts/lanes.hpp"
#include "results/plot/chart.hpp"

namespace mllmsim::charts {

// Device lanes with compute on top and communication below; micro-batch numbers where they fit.
// Spans thinner than half a pixel are drawn together, as what fills most of each half pixel.
plot::Chart timeline_chart(std::span<const results::RunResult> runs, const Choice& choice);

// Bubbles of a step by stage, stacked by kind; means over steps and replicas.
plot::Chart bubbles_chart(std::span<const results::RunResult> runs);

// Memory of each stage's GPU over a step, a panel each: what it always keeps and activations as a
// stack, with what the GPU has.
plot::Chart memory_chart(std::span<const results::RunResult> runs, const Choice& choice);

// "s", "ms" or "us", so that a time of this length has few digits; and how many there are in a
// second.
struct TimeUnit {
  const char* name = "s";
  double per_second = 1;
  double operator()(Time t) const { return static_cast<double>(t.value) / (1e9 / per_second); }
};
TimeUnit unit_for(Time longest);

}  // namespace mllmsim::charts
