// What can be measured, by shape: one Task is one line of the raw file.
//
// A Task's JSON (to_json) is its identity; the results `us`, `spread`, `samples` or `slowdown` are
// appended to it. Two lines with the same identity are the same measurement, which is how an
// interrupted run knows what it has done. README.md lists the lines.
#pragma once

#include <boost/json/object.hpp>
#include <string>
#include <string_view>
#include <variant>

#include "cost_models/kernels/kernel.hpp"
#include "sim/base/enum_names.hpp"

namespace mllmsim::calibrate {

// burst: caches flushed before each repetition, the GPU otherwise idle.
// sustained: back to back for seconds, so that the clock settles where power and heat allow.
enum class Mode : std::uint8_t { burst, sustained };

struct GemmTask {
  costs::Gemm gemm;
  Mode mode = Mode::burst;
};

// `batch` sequences of equal length in one launch.
struct AttentionTask {
  std::int64_t length = 0, batch = 0, heads = 0, kv_heads = 0, head_dim = 0;
  bool causal = false, backward = false;
};

// `activation` tells GELU from addition among the element-wise kernels.
struct MemoryTask {
  costs::MemoryOp op = costs::MemoryOp::elementwise;
  std::int64_t rows = 0, row_length = 0;
  bool activation = false;

  // Every input and every output once, however often the kernel passes over them.
  // Activations are bf16; Adam reads gradient, weight and two moments in fp32 and writes the last
  // three and a bf16 copy.
  std::int64_t bytes() const;
};

struct CollectiveTask {
  costs::Collective collective;
};

struct P2pTask {
  std::int64_t bytes = 0;
  bool same_node = true;
};

// The time from one empty kernel to the next, back to back.
struct LaunchTask {};

enum class CopyKind : std::uint8_t { h2d, d2h, device };
struct CopyTask {
  CopyKind kind = CopyKind::device;
  std::int64_t bytes = 0;
};

// How much longer `gemm` takes while `collective` runs beside it: a ratio, not a time.
struct OverlapTask {
  costs::Collective collective;
  costs::Gemm gemm;
};

using Task = std::variant<GemmTask, AttentionTask, MemoryTask, CollectiveTask, P2pTask, LaunchTask,
                          CopyTask, OverlapTask>;

inline constexpr std::string_view kParts[] = {"gemm", "attention", "memory_bound", "collective",
                                              "p2p",  "launch",    "copy",         "overlap"};
std::string_view part(const Task& task);

boost::json::object to_json(const Task& task);
// Throws UserError at `where`. Unknown keys are ignored: a line of a raw file is a task too.
Task task_from_json(const boost::json::value& line, const std::string& where);
// to_json as text: equal for equal tasks.
std::string key(const Task& task);

// GPUs and nodes that must take part.
costs::GroupShape group(const Task& task);

// What one repetition does and holds, for estimates and limits.
struct Work {
  double flops = 0;
  double bytes = 0;
};
Work work(const Task& task);

}  // namespace mllmsim::calibrate

namespace mllmsim {

template <>
struct Names<calibrate::Mode> {
  static constexpr std::array<std::string_view, 2> list{"burst", "sustained"};
};
template <>
struct Names<calibrate::CopyKind> {
  static constexpr std::array<std::string_view, 3> list{"h2d", "d2h", "device"};
};

}  // namespace mllmsim
