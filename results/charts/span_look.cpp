#include "results/charts/span_look.hpp"

#include <algorithm>
#include <array>

namespace mllmsim::charts {
namespace {

constexpr std::array<plot::Colour, 5> kUnknown{0x8c510a, 0x01665e, 0x762a83, 0x35978f, 0xbf812d};

bool contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

// "forward, encoder + LLM"; only "forward" if neither kind nor name tell.
std::string pass(const char* base, std::string_view kind, std::string_view name) {
  const bool encoder = contains(name, "encoder") || contains(kind, "encoder");
  const bool llm = contains(name, "llm") || contains(kind, "llm");
  return std::string(base) + (encoder && llm ? ", encoder + LLM"
                              : encoder      ? ", encoder"
                              : llm          ? ", LLM"
                                             : "");
}

}  // namespace

SpanLooks::SpanLooks()
    : all_{
          {"forward, encoder", 0x56b4e9},
          {"forward, encoder + LLM", 0x2b93c9, plot::Fill::solid, false, true},
          {"forward, LLM", 0x0072b2, plot::Fill::solid, false, true},
          {"forward", 0x0072b2, plot::Fill::solid, false, true},
          {"backward, encoder", 0xf0b040},
          {"backward, encoder + LLM", 0xe07b00},
          {"backward, LLM", 0xd55e00, plot::Fill::solid, false, true},
          {"backward", 0xd55e00, plot::Fill::solid, false, true},
          {"recompute, encoder", 0xf7f1a1},
          {"recompute, encoder + LLM", 0xf0e442},
          {"recompute, LLM", 0xe0d020},
          {"recompute", 0xf0e442},
          {"optimizer", 0x000000, plot::Fill::solid, false, true},
          {"tp communication", 0x009e73, plot::Fill::solid, false, true},
          {"pp communication", 0x777777, plot::Fill::solid, false, true},
          {"dp communication", 0xcc79a7},
          {"sync", 0x332288, plot::Fill::solid, false, true},
          {"bubble pp_warmup", 0x808080, plot::Fill::rising, true},
          {"bubble pp_cooldown", 0x808080, plot::Fill::falling, true},
          {"bubble pp_other", 0xdadada, plot::Fill::solid, true},
          {"bubble tp", 0x7fceb9, plot::Fill::crossed, true},
          {"bubble dp_all_gather", 0xcc79a7, plot::Fill::rising, true},
          {"bubble dp_reduce_scatter", 0xcc79a7, plot::Fill::falling, true},
          {"bubble dp_wait", 0xf2dde9, plot::Fill::solid, true},
          {"bubble encoder_wait", 0x8ecbef, plot::Fill::crossed, true},
      } {}

std::size_t SpanLooks::named(const std::string& name) {
  const auto at =
      std::find_if(all_.begin(), all_.end(), [&](const SpanLook& l) { return l.name == name; });
  if (at != all_.end()) return static_cast<std::size_t>(at - all_.begin());
  const bool bubble = name.starts_with("bubble");
  all_.push_back({name, bubble ? 0xc0c0c0 : kUnknown[unknown_ % kUnknown.size()],
                  bubble ? plot::Fill::crossed : plot::Fill::solid, bubble, !bubble});
  unknown_ += !bubble;
  return all_.size() - 1;
}

std::size_t SpanLooks::of(std::string_view kind, std::string_view name) {
  if (kind == "bubble") return named("bubble " + std::string(name));
  if (kind.starts_with("tp")) return named("tp communication");
  if (kind.starts_with("pp")) return named("pp communication");
  if (kind.starts_with("dp")) return named("dp communication");
  for (const char* base : {"recompute", "backward", "forward"})
    if (contains(kind, base)) return named(pass(base, kind, name));
  return named(std::string(kind));
}

Strip strip_of(std::string_view stream) {
  if (stream == "compute") return Strip::compute;
  if (stream.starts_with("tp")) return Strip::tp;
  if (stream.starts_with("pp")) return Strip::pp;
  if (stream.starts_with("dp")) return Strip::dp;
  return Strip::other;
}

}  // namespace mllmsim::charts
