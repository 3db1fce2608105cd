// PyTorch profiler traces (kineto's Chrome JSON) as raw measurements: of one rank, a few steps,
// recorded with shapes.
//
//   operators   products, attention and memory-bound ones (kineto_operators.hpp). On a GPU: the
//               kernels that they or what they call launched (linked by External id, or by
//               correlation through the runtime call), summed. In a trace without kernels, of a
//               CPU: the operator's own time, without that of others that it calls, and the time
//               since the one before it ended, which is what Python, autograd and views cost
//               there; less what the profiler itself takes for every operator it records, if that
//               was measured. Of equal shapes the median.
//   collective  NCCL kernels whose arguments say operation, sizes and ranks: the shortest of equal
//               ones, as the others include waiting for peers.
//   launch      the median gap between kernels that follow each other on a stream.
//
// Products in fp32 count only if there are none in 16 bits. Left out: layouts of products, and
// recomputed forwards, which would be taken for gradients: profile without recomputation. Node
// shapes assume ranks numbered node by node.
#pragma once

#include <filesystem>
#include <string>

#include "cost_models/fit/raw_data.hpp"

namespace mllmsim::fit {

struct KinetoOptions {
  int gpus_per_node = 8;
  double profiler_us = 0;  // added by the profiler to a CPU's time for each operator it records
};

RawData import_kineto(const std::filesystem::path& file, const KinetoOptions& options = {});
RawData parse_kineto(const std::string& text, const std::string& file,
                     const KinetoOptions& options = {});

}  // namespace mllmsim::fit
