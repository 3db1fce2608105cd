#include "results/plot/dark_svg.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <string_view>
#include <utility>

#include "results/plot/chart.hpp"
#include "sim/base/text.hpp"

namespace mllmsim::plot {
namespace {

// black, #000, #000000, rgb(0,0,0) or rgb(  0,   0,   0): as gnuplot's version and the kind of item
// ask. Nothing for what is no colour.
std::optional<Colour> colour_of(std::string_view text) {
  if (text == "black") return 0;
  if (text == "white") return 0xffffff;
  if (text.starts_with('#') && text.size() == 7) {
    Colour colour = 0;
    const char* const last = text.data() + text.size();
    const auto [end, error] = std::from_chars(text.data() + 1, last, colour, 16);
    return end == last && error == std::errc{} ? std::optional(colour) : std::nullopt;
  }
  if (!text.starts_with("rgb(") || !text.ends_with(')')) return std::nullopt;
  std::string_view rest = text.substr(4, text.size() - 5);
  Colour colour = 0;
  for (int part = 0; part < 3; ++part) {
    const std::size_t comma = std::min(rest.find(','), rest.size());
    const auto value = to_number<std::uint8_t>(trimmed(rest.substr(0, comma)));
    if (!value) return std::nullopt;
    colour = colour * 256 + *value;
    rest.remove_prefix(std::min(comma + 1, rest.size()));
  }
  return rest.empty() ? std::optional(colour) : std::nullopt;
}

// Colours of a tag's attributes as #rrggbb, which the style sheet below can name.
std::string with_plain_colours(std::string_view tag) {
  constexpr std::array<std::string_view, 3> kAttributes{"fill=", "stroke=", "color="};
  std::string out;
  while (!tag.empty()) {
    const auto at = std::find_if(kAttributes.begin(), kAttributes.end(),
                                 [&](std::string_view name) { return tag.starts_with(name); });
    if (at != kAttributes.end() && tag.size() > at->size()) {
      const std::size_t from = at->size() + 1, end = tag.find(tag[from - 1], from);
      const std::string_view value = tag.substr(from, end - from);
      if (const auto colour = colour_of(value); colour && end != std::string_view::npos) {
        out += fmt::format("{}\"#{:06x}\"", *at, *colour);
        tag.remove_prefix(end + 1);
        continue;
      }
    }
    out += tag.front();
    tag.remove_prefix(1);
  }
  return out;
}

}  // namespace

std::string with_dark_colours(std::string_view svg) {
  constexpr std::string_view kStyle = R"css(
<style>
@media (prefers-color-scheme: dark) {
  rect[fill="#ffffff"] { fill: #161a1f }
  [stroke="#ffffff"] { stroke: #161a1f }
  [color="#ffffff"] { color: #161a1f }
  [fill="#000000"] { fill: #d5dbe1 }
  [stroke="#000000"] { stroke: #d5dbe1 }
  [color="#000000"] { color: #d5dbe1 }
  [stroke="#d0d0d0"] { stroke: #343b44 }
  [stroke="#606060"] { stroke: #9aa5b1 }
}
</style>
)css";
  std::string out;
  bool styled = false;
  while (!svg.empty()) {  // a text, then a tag
    const std::size_t open = std::min(svg.find('<'), svg.size());
    out += svg.substr(0, open);
    svg.remove_prefix(open);
    const std::string_view tag = svg.substr(0, std::min(svg.find('>'), svg.size() - 1) + 1);
    out += with_plain_colours(tag);
    if (tag.starts_with("<svg") && !std::exchange(styled, true)) out += kStyle;
    svg.remove_prefix(tag.size());
  }
  return out;
}

}  // namespace mllmsim::plot
