#include "results/plot/dark_svg.hpp"

#include <string_view>

namespace mllmsim::plot {

std::string with_dark_colours(std::string svg) {
  // gnuplot writes a colour with or without spaces, as its version and the kind of item ask.
  constexpr std::string_view kStyle = R"css(
<style>
@media (prefers-color-scheme: dark) {
  rect[fill="#ffffff"] { fill: #161a1f }
  [color="black"], [color="#000000"], [color="rgb(0,0,0)"] { color: #d5dbe1 }
  [fill="black"], [fill="rgb(0,0,0)"], [fill="rgb(  0,   0,   0)"] { fill: #d5dbe1 }
  [fill="rgb(0, 0, 0)"] { fill: #d5dbe1 }
  [stroke="black"], [stroke="rgb(0,0,0)"], [stroke="rgb(  0,   0,   0)"] { stroke: #d5dbe1 }
  [stroke="rgb(208, 208, 208)"] { stroke: #343b44 }
  [stroke="rgb( 96,  96,  96)"] { stroke: #9aa5b1 }
  [stroke="rgb(255, 255, 255)"] { stroke: #161a1f }
  [color="#FFFFFF"] { color: #161a1f }
}
</style>
)css";
  constexpr std::string_view kBefore = "</desc>";
  const auto at = svg.find(kBefore);
  if (at != std::string::npos) svg.insert(at + kBefore.size(), kStyle);
  return svg;
}

}  // namespace mllmsim::plot
