// How spans look, in plots and in the report alike.
//
// Colours are Okabe and Ito's. Passes: blue forward, orange-red backward, yellow recompute, with
// the encoder lighter than the LLM. Communication: green tp, grey pp, pink dp. A bubble has the
// pale colour of what it waits for, and kinds that share one differ in hatching.
//
// Whether a pass is the encoder's or the LLM's is known from its name: chunks say it, and so do
// kernels of encoders beside the LLM's pipeline. Other kernels do not, and look alike.
#pragma once

#include <string>
#include <vector>

#include "results/plot/chart.hpp"
#include "results/run/run_result.hpp"

namespace mllmsim::charts {

struct SpanLook {
  std::string name;  // in the legend
  plot::Colour colour = 0;
  plot::Fill fill = plot::Fill::solid;
  bool bubble = false;
  bool dark = false;  // text on it is white
};

const std::vector<SpanLook>& span_looks();  // in the order of a legend

// The number of a span's look, and of a bubble's.
std::size_t look_of(const results::SpanRow& span);
std::size_t look_of(BubbleKind kind);

// The rows of a lane, top to bottom: compute, then the communication streams of a dimension.
enum class Strip : std::uint8_t { compute, tp, pp, dp, encoder };
inline constexpr std::size_t kStrips = 5;
Strip strip_of(StreamKind stream);

}  // namespace mllmsim::charts
