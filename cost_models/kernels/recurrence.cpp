#include "cost_models/kernels/recurrence.hpp"

#include <algorithm>

namespace mllmsim::costs {

Cost recurrence_time(const RecurrenceModel& m, const Gpu& gpu, const ChunkedScan& scan,
                     const Cost& memory) {
  const double rate = m.flops_per_sm.value * gpu.sms / (scan.backward ? m.backward.value : 1.0) /
                      (scan.mamba ? m.mamba.value : 1.0);
  const double at_once = (scan.products.value - scan.stepwise.value) / rate;
  const double in_steps =
      std::max(scan.stepwise.value / rate, static_cast<double>(scan.steps) * m.step.value);
  const double launches = m.launch.value * (scan.backward ? 2 : 1);
  return {Seconds{launches + std::max(memory.time.value, at_once + in_steps)}, m.provenance.source};
}

Cost KernelCosts::chunked_scan(const ChunkedScan& scan) const {
  const Seconds at_peak{scan.products.value / peak(NumberFormat::bf16).value};
  const Cost memory = memory_bound({MemoryOp::elementwise, scan.bytes});
  return {std::max(at_peak, memory.time), Source::estimate};
}

}  // namespace mllmsim::costs
