// PyTorch profiler traces (kineto's Chrome JSON) as raw measurements:
//
//   gemm        aten::mm, addmm and bmm of one matrix, recorded with shapes, in 16-bit types: the
//               kernels they launched (linked by External id, or by correlation through the runtime
//               call), summed; the median of equal shapes. Layouts are not told apart.
//   collective  NCCL kernels whose arguments say operation, sizes and ranks: the shortest of equal
//               ones, as the others include waiting for peers.
//   launch      the median gap between kernels that follow each other on a stream.
//
// Anything else in the trace is skipped. Node shapes assume ranks numbered node by node.
#pragma once

#include <filesystem>
#include <string>

#include "cost_models/fit/raw_data.hpp"

namespace mllmsim::fit {

RawData import_kineto(const std::filesystem::path& file, int gpus_per_node = 8);
RawData parse_kineto(const std::string& text, const std::string& file, int gpus_per_node = 8);

}  // namespace mllmsim::fit
