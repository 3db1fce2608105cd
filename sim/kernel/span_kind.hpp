// What a stretch of a device's time is, as a timeline shows it: a task of some kind, or a bubble.
// Every TaskKind has a SpanKind of its name and number; `bubble` comes after them.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <string_view>

#include "sim/base/enum_names.hpp"
#include "sim/kernel/program.hpp"

namespace mllmsim {

enum class SpanKind : std::uint8_t {
  forward,
  backward,
  recompute,
  optimizer,
  tp_collective,
  pp_send,
  pp_recv,
  dp_all_gather,
  dp_reduce_scatter,
  sync,
  host,
  bubble,  // the compute stream idles; see BubbleKind
};

template <>
struct Names<SpanKind> {
  static constexpr auto list = [] {
    const auto& tasks = Names<TaskKind>::list;
    std::array<std::string_view, tasks.size() + 1> names;
    *std::copy(tasks.begin(), tasks.end(), names.begin()) = "bubble";
    return names;
  }();
};
static_assert(static_cast<std::size_t>(SpanKind::bubble) == Names<TaskKind>::list.size());

constexpr SpanKind span_kind(TaskKind kind) { return static_cast<SpanKind>(kind); }
static_assert(span_kind(TaskKind::host) == SpanKind::host);

}  // namespace mllmsim
