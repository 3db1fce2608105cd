// Tasks as kernels of device 0 with their inputs in place; one file for each.
#pragma once

#include <memory>
#include <string>

#include "cost_models/calibrate/cuda/cuda.hpp"

struct cublasContext;

namespace mllmsim::calibrate::cuda {

class CublasHandle {
 public:
  CublasHandle();
  ~CublasHandle();
  CublasHandle(const CublasHandle&) = delete;
  CublasHandle& operator=(const CublasHandle&) = delete;
  cublasContext* on(cudaStream_t stream) const;
  std::string version() const;

 private:
  cublasContext* handle_ = nullptr;
  Buffer<char> workspace_;
};

// `cublas` must outlive the kernel.
Kernel gemm_kernel(const costs::Gemm& gemm, const CublasHandle& cublas);
// Of inputs in fp8; CannotMeasure if the GPU or the shape does not allow it.
Kernel fp8_gemm_kernel(const costs::Gemm& gemm);
Kernel memory_kernel(const MemoryTask& task);
Kernel copy_kernel(const CopyTask& task);

// By cuDNN if its frontend was found at build time, by attention_kernels.cuh otherwise.
Kernel attention_kernel(const AttentionTask& task);
std::string attention_kernel_name();

}  // namespace mllmsim::calibrate::cuda
