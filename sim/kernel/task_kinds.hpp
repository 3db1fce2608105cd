// Kinds of streams and tasks, and what a stretch of a device's time is, as a timeline shows it: a
// task of some kind, or a bubble. Every TaskKind has a SpanKind of its name and number; `bubble`
// comes after them.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <string_view>

#include "sim/base/enum_names.hpp"
#include "sim/base/units.hpp"

namespace mllmsim {

using TaskId = Id<struct TaskTag>;

enum class StreamKind : std::uint8_t {
  compute,
  tp,
  pp_send_next,
  pp_recv_prev,
  pp_send_prev,
  pp_recv_next,
  dp,
  // Encoders beside the LLM's pipeline: activations towards the LLM, gradients away from it.
  encoder_send_next,
  encoder_recv_prev,
  encoder_send_prev,
  encoder_recv_next,
};
inline constexpr std::uint32_t kStreamKinds = 11;
template <>
struct Names<StreamKind> {
  static constexpr std::array<std::string_view, kStreamKinds> list{
      "compute",          "tp", "pp_send_next",      "pp_recv_prev",      "pp_send_prev",
      "pp_recv_next",     "dp", "encoder_send_next", "encoder_recv_prev", "encoder_send_prev",
      "encoder_recv_next"};
};

enum class TaskKind : std::uint8_t {
  forward,
  backward,
  recompute,
  optimizer,
  tp_collective,
  pp_send,
  pp_recv,
  dp_all_gather,
  dp_reduce_scatter,  // or the all-reduce of zero_stage 0
  sync,               // gradient norm and overflow check: all stages meet before the optimizer
  host,               // the CPU prepares a pass while the compute stream idles
};
template <>
struct Names<TaskKind> {
  static constexpr std::array<std::string_view, 11> list{
      "forward", "backward",      "recompute",         "optimizer", "tp_collective", "pp_send",
      "pp_recv", "dp_all_gather", "dp_reduce_scatter", "sync",      "host"};
};

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
