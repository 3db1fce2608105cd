// Time of a recurrence in chunks (gated delta rule, Mamba-2), as a handful of Triton kernels:
//
//   time = launch + max(bytes, (products - stepwise) / rate + max(stepwise / rate, steps * step))
//
// with rate = SMs * flops_per_sm, which Mamba-2's kernels do not reach (mamba). Products of chunks
// are small, between exponentials and triangular solves, so that an SM's pace does not follow the
// data sheet's peak: it is about the same on H200 and GB200, whose peaks differ by 2.5. Few heads
// leave SMs idle in the kernels that go from chunk to chunk; those take a time of their own for
// each. bytes: at the pace of element-wise kernels.
//
// Left out: chunks that are not full.
#pragma once

#include "cost_models/kernels/gpus.hpp"
#include "cost_models/kernels/kernel_costs.hpp"
#include "cost_models/kernels/provenance.hpp"

namespace mllmsim::costs {

struct RecurrenceModel {
  Provenance provenance;
  Seconds launch{};  // of a forward's kernels together
  FlopsPerSecond flops_per_sm{};
  Seconds step{};
  Factor backward;  // of its products' times
  Factor mamba;     // Mamba-2's over those of the gated delta rule, both passes
};

// `memory`: of its bytes.
Cost recurrence_time(const RecurrenceModel& model, const Gpu& gpu, const ChunkedScan& scan,
                     const Cost& memory);

}  // namespace mllmsim::costs
