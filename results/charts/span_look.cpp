#include "results/charts/span_look.hpp"

#include <algorithm>
#include <array>
#include <string_view>

#include "results/text/words.hpp"
#include "sim/base/errors.hpp"

namespace mllmsim::charts {
namespace {

using plot::Fill;

// Numbers of looks: four of each pass (part_of), one of all else that devices do, then bubbles.
enum Look : std::size_t {
  forward = 0,
  backward = 4,
  recompute = 8,
  optimizer = 12,
  tp,
  pp,
  dp,
  sync,
  host,
  first_bubble,
};

struct BubbleLook {
  BubbleKind kind;
  plot::Colour colour;
  Fill fill;
  plot::Colour alone;
};
constexpr std::array<BubbleLook, kBubbleKinds> kBubbleLooks{{
    {BubbleKind::pp_warmup, 0x707070, Fill::rising, 0xf0e442},
    {BubbleKind::pp_cooldown, 0x707070, Fill::falling, 0xe69f00},
    {BubbleKind::pp_other, 0x707070, Fill::crossed, 0xd55e00},
    {BubbleKind::tp, 0x008a64, Fill::crossed, 0x009e73},
    {BubbleKind::dp_all_gather, 0xb8538c, Fill::rising, 0xcc79a7},
    {BubbleKind::dp_reduce_scatter, 0xb8538c, Fill::falling, 0x8c3a6b},
    {BubbleKind::dp_wait, 0xb8538c, Fill::crossed, 0x56b4e9},
    {BubbleKind::encoder_wait, 0x2f7fb5, Fill::crossed, 0x0072b2},
}};

std::vector<SpanLook> make_looks() {
  std::vector<SpanLook> looks{
      {"forward, encoder", 0x56b4e9},
      {"forward, encoder + LLM", 0x2b93c9, Fill::solid, false, true},
      {"forward, LLM", 0x0072b2, Fill::solid, false, true},
      {"forward", 0x5a5fb8, Fill::solid, false, true},
      {"backward, encoder", 0xf0b040},
      {"backward, encoder + LLM", 0xe07b00},
      {"backward, LLM", 0xd55e00, Fill::solid, false, true},
      {"backward", 0xa03c3c, Fill::solid, false, true},
      {"recompute, encoder", 0xf7f1a1},
      {"recompute, encoder + LLM", 0xf0e442},
      {"recompute, LLM", 0xe0d020},
      {"recompute", 0xb8a45a},
      {"optimizer", 0x000000, Fill::solid, false, true},
      {"tensor-parallel communication", 0x009e73, Fill::solid, false, true},
      {"transfer between stages", 0x777777, Fill::solid, false, true},
      {"data-parallel communication", 0xcc79a7},
      {std::string(results::words(SpanKind::sync)), 0x7a60c8, Fill::solid, false, true},
      {std::string(results::words(SpanKind::host)), 0x8c510a, Fill::solid, false, true},
  };
  check(looks.size() == first_bubble, "every number has a look");
  for (const BubbleLook& b : kBubbleLooks)
    looks.push_back({std::string(results::words(b.kind)), b.colour, b.fill, true, false, b.alone});
  return looks;
}

// Which of a pass's four looks: encoder, encoder and LLM, LLM, unknown.
std::size_t part_of(std::string_view name) {
  const bool encoder = name.find("encoder") != std::string_view::npos;
  const bool llm = name.find("llm") != std::string_view::npos;
  return encoder && llm ? 1 : encoder ? 0 : llm ? 2 : 3;
}

}  // namespace

const std::vector<SpanLook>& span_looks() {
  static const std::vector<SpanLook> looks = make_looks();
  return looks;
}

std::size_t look_of(const results::SpanRow& span) {
  switch (span.kind) {
    case SpanKind::forward:
      return forward + part_of(span.name);
    case SpanKind::backward:
      return backward + part_of(span.name);
    case SpanKind::recompute:
      return recompute + part_of(span.name);
    case SpanKind::optimizer:
      return optimizer;
    case SpanKind::tp_collective:
      return tp;
    case SpanKind::pp_send:
    case SpanKind::pp_recv:
      return pp;
    case SpanKind::dp_all_gather:
    case SpanKind::dp_reduce_scatter:
      return dp;
    case SpanKind::sync:
      return sync;
    case SpanKind::host:
      return host;
    case SpanKind::bubble:
      return look_of(span.bubble);
  }
  throw InternalError("unknown kind of span");
}

std::size_t look_of(BubbleKind kind) {
  const auto at = std::ranges::find(kBubbleLooks, kind, &BubbleLook::kind);
  check(at != kBubbleLooks.end(), "every kind of bubble has a look");
  return first_bubble + static_cast<std::size_t>(at - kBubbleLooks.begin());
}

Strip strip_of(StreamKind stream) {
  switch (stream) {
    case StreamKind::compute:
      return Strip::compute;
    case StreamKind::tp:
      return Strip::tp;
    case StreamKind::pp_send_next:
    case StreamKind::pp_recv_prev:
    case StreamKind::pp_send_prev:
    case StreamKind::pp_recv_next:
      return Strip::pp;
    case StreamKind::dp:
      return Strip::dp;
    case StreamKind::encoder_send_next:
    case StreamKind::encoder_recv_prev:
    case StreamKind::encoder_send_prev:
    case StreamKind::encoder_recv_next:
      return Strip::encoder;
  }
  throw InternalError("unknown stream");
}

}  // namespace mllmsim::charts
