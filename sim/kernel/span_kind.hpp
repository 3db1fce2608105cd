// What a stretch of a stream's time is: a task of some kind, or a bubble. Rows of timelines carry
// it; the program itself has only tasks.
#pragma once

#include <cstdint>
#include <string_view>

#include "sim/kernel/program.hpp"

namespace mllmsim {

// The kinds of tasks, in their order, then bubble.
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
  bubble,
};
inline constexpr std::size_t kSpanKinds = 12;
static_assert(static_cast<TaskKind>(SpanKind::host) == TaskKind::host);

constexpr SpanKind span_kind(TaskKind kind) { return static_cast<SpanKind>(kind); }

inline std::string_view name(SpanKind kind) {
  return kind == SpanKind::bubble ? "bubble" : name(static_cast<TaskKind>(kind));
}

}  // namespace mllmsim
