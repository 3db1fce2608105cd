// How spans look, in plots and in the report alike.
//
// Colours are Okabe and Ito's. Passes: blue forward, orange-red backward, yellow recompute, with
// the encoder lighter than the LLM. Communication: green tp, grey pp, pink dp. What is solid is
// work, what is hatched is idle: a bubble has lines in the colour of what it waits for, and kinds
// that share one differ in their direction. Lines stand out from white and from a dark page, at
// least 3:1. Alone, without work around them, bubbles have colours that differ by cause.
//
// Whether a pass is the encoder's or the LLM's is known from its name, of a chunk or a kernel
// (lower/passes.hpp). Passes of given times are neither.
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
  bool dark = false;       // text on it is white
  plot::Colour alone = 0;  // of a bubble, if only bubbles are shown
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
