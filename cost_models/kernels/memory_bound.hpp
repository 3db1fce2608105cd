// Time of a kernel limited by memory bandwidth.
//
//   time = launch + bytes / (memory bandwidth * efficiency(op, row length))
//
// The efficiency of norms and softmax falls with the row, which has to fit a thread block's
// registers: it is linear in log2(row length) between measured rows and constant beyond. Operations
// without rows have one entry. Where sizes matter more (caches: a CPU's, a GPU's L2), an operation
// has a curve through the measured sizes instead,
//
//   time = curve(bytes)          (size_curve.hpp)
//
// Activation functions that were not measured are elementwise; a loss's backward is as its forward.
#pragma once

#include <optional>
#include <vector>

#include "cost_models/kernels/gpus.hpp"
#include "cost_models/kernels/size_curve.hpp"

namespace mllmsim::costs {

struct RowEfficiency {
  std::int64_t row_length = 0;
  double efficiency = 0;
};

struct MemoryOperation {
  MemoryOp op = MemoryOp::elementwise;
  Provenance provenance;
  std::vector<RowEfficiency> rows;  // by rising row length, at least one
  std::optional<SizeCurve> curve{};
};

struct MemoryBoundModel {
  Seconds launch{};
  std::vector<MemoryOperation> operations;  // one of each op
};

Cost memory_bound_time(const MemoryBoundModel& model, const Gpu& gpu, const MemoryBound& kernel);

}  // namespace mllmsim::costs
