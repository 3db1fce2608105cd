// What PyTorch's profiler (Kineto) says of communication: NCCL's names of kernels, and the fields
// of a collective, so that tools sum them up and `calibrate import` learns from them.
//
// A collective's buffer follows from what a rank sends round a ring of n,
//   sent = passes * buffer * (n - 1) / n          passes: 2 of an all-reduce, else 1
// where spans have the bytes sent; elements are bf16, 2 bytes. Which collective a span is, is known
// from its name: one kind of span stands for several ("dp_reduce_scatter" for an all-reduce too).
#pragma once

#include <cstdint>
#include <string>

#include "results/charts/lanes.hpp"

namespace mllmsim::results {

struct KinetoKernel {
  std::string name;
  std::string fields;  // of its arguments in JSON, each after a comma
};

// `placement`: of the run's ranks.
KinetoKernel kineto_kernel(const SpanRow& communication, const charts::Lane& lane,
                           const Parallelism& placement);

}  // namespace mllmsim::results
