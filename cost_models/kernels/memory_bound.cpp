#include "cost_models/kernels/memory_bound.hpp"

#include <algorithm>
#include <cmath>

#include "sim/base/errors.hpp"

namespace mllmsim::costs {
namespace {

double efficiency(const std::vector<RowEfficiency>& rows, std::int64_t length) {
  const auto above = std::find_if(rows.begin(), rows.end(),
                                  [&](const RowEfficiency& r) { return r.row_length >= length; });
  if (above == rows.begin()) return rows.front().efficiency;
  if (above == rows.end()) return rows.back().efficiency;
  const auto below = above - 1;
  const double from = std::log2(static_cast<double>(below->row_length));
  const double to = std::log2(static_cast<double>(above->row_length));
  const double part = (std::log2(static_cast<double>(length)) - from) / (to - from);
  return below->efficiency + part * (above->efficiency - below->efficiency);
}

}  // namespace

Cost memory_bound_time(const MemoryBoundModel& model, const Gpu& gpu, const MemoryBound& kernel) {
  const auto find = [&](MemoryOp op) {
    return std::find_if(model.operations.begin(), model.operations.end(),
                        [&](const MemoryOperation& o) { return o.op == op; });
  };
  auto found = find(kernel.op);
  if (found == model.operations.end() && kernel.op >= MemoryOp::activation)
    found = find(kernel.op == MemoryOp::cross_entropy_backward ? MemoryOp::cross_entropy
                                                               : MemoryOp::elementwise);
  check(found != model.operations.end(), "memory-bound model without this operation");
  if (found->curve) {
    const auto bytes = static_cast<double>(kernel.bytes.value);
    return {found->curve->at(bytes),
            weaker(found->provenance.source, found->curve->coverage(bytes))};
  }
  const BytesPerSecond rate =
      gpu.memory_bandwidth * efficiency(found->rows, std::max<std::int64_t>(kernel.row_length, 1));
  return {model.launch + kernel.bytes / rate, found->provenance.source};
}

}  // namespace mllmsim::costs
