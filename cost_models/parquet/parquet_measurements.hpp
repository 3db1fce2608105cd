// Public tables of measured kernels in Parquet. Apart from the other readers, so that the library
// needs no Arrow.
#pragma once

#include "cost_models/fit/raw_data.hpp"

namespace mllmsim::fit {

// A table as aiconfigurator (NVIDIA, Apache-2.0) keeps them: a row is a kernel in a serving engine,
// `latency` in milliseconds, `device` the GPU's name. What is measured follows from the columns:
//
//   gemm_dtype, m, n, k                                              forward GEMM
//   batch_size, isl, num_heads, num_key_value_heads, head_dim, ...   causal attention
//   batch_size, isl, num_heads, head_dim, attn_dtype                 attention of encoders
//   op_name, nccl_dtype, num_gpus, message_size                      NCCL inside a node; sizes
//                                                                    count values, not bytes
//
// Skipped, as no model asks for them: fp8 attention, sliding windows, caches below 16 bits.
// UserError for other tables (expert layers and their dispatch among them) and for other values.
RawData read_parquet_measurements(const std::filesystem::path& file);

// From here on read_raw() takes .parquet files.
void register_parquet_measurements();

}  // namespace mllmsim::fit
