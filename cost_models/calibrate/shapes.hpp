// The built-in lists of a plan, part by part.
//
// quick keeps about one in five. Sizes are those of LLM and ViT training: bf16, tokens in
// thousands, buffers from 1 KB to 1 GB.
#pragma once

#include <vector>

#include "cost_models/calibrate/plan.hpp"

namespace mllmsim::calibrate {

std::vector<Task> gemm_tasks(bool quick, const std::vector<ModelShape>& models);
std::vector<Task> attention_tasks(bool quick, const std::vector<ModelShape>& models);
std::vector<Task> memory_tasks(bool quick);
std::vector<Task> copy_tasks(bool quick);
// Groups of 2, 4, ... gpus inside a node; of one and of all GPUs of 2, 4, ... nodes.
std::vector<Task> communication_tasks(bool quick, int gpus, int nodes);
std::vector<Task> overlap_tasks(bool quick, int gpus);

// A linear layer's three GEMMs (cost_models/kernels/kernel.hpp).
std::vector<costs::Gemm> linear_layer(std::int64_t tokens, std::int64_t inputs,
                                      std::int64_t outputs);

}  // namespace mllmsim::calibrate
