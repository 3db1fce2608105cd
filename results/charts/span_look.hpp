// How spans look, in plots and in the report alike.
//
// Colours are Okabe and Ito's. Passes: blue forward, orange-red backward, yellow recompute, with
// the encoder lighter than the LLM. Communication: green tp, grey pp, pink dp. A bubble has the
// pale colour of what it waits for, and kinds that share one differ in hatching. A span of a kind
// nobody listed here gets a look of its own when it first appears.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "results/plot/chart.hpp"

namespace mllmsim::charts {

struct SpanLook {
  std::string name;  // in the legend
  plot::Colour colour = 0;
  plot::Fill fill = plot::Fill::solid;
  bool bubble = false;
  bool dark = false;  // text on it is white
};

class SpanLooks {
 public:
  SpanLooks();

  // The number of a span's look, by its kind and name as in the spans table.
  std::size_t of(std::string_view kind, std::string_view name);

  const SpanLook& operator[](std::size_t look) const { return all_[look]; }
  const std::vector<SpanLook>& all() const { return all_; }  // in the order of a legend

 private:
  std::size_t named(const std::string& name);

  std::vector<SpanLook> all_;
  std::size_t unknown_ = 0;
};

// The rows of a lane, top to bottom: compute, then the communication streams of a dimension.
enum class Strip : std::uint8_t { compute, tp, pp, dp, other };
inline constexpr std::size_t kStrips = 5;
Strip strip_of(std::string_view stream);

}  // namespace mllmsim::charts
