// CUDA's C interface with owners and exceptions.
//
// A failed allocation means that this task does not fit (CannotMeasure); any other failure is the
// environment's (EnvironmentError), since kernels are checked before they are shipped.
#pragma once

#include <cuda_runtime_api.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "cost_models/calibrate/backend.hpp"
#include "cost_models/calibrate/cuda/kernels.hpp"
#include "sim/base/errors.hpp"

namespace mllmsim::calibrate::cuda {

inline void check_cuda(cudaError_t error, const char* what) {
  if (error == cudaSuccess) return;
  const std::string text = std::string(what) + ": " + cudaGetErrorString(error);
  if (error == cudaErrorMemoryAllocation) {
    cudaGetLastError();  // clear it: the next task may fit
    throw CannotMeasure(text);
  }
  throw EnvironmentError(text);
}

// Memory of the current device, of the host (pinned), events and streams: freed by the owner.
template <class T>
using Buffer = std::shared_ptr<T[]>;  // shared, so that kernels can be copyable functions

template <class T>
Buffer<T> device_buffer(std::int64_t count) {
  void* memory = nullptr;
  check_cuda(cudaMalloc(&memory, static_cast<std::size_t>(count) * sizeof(T)), "cudaMalloc");
  return Buffer<T>(static_cast<T*>(memory), [](T* p) { cudaFree(p); });
}

template <class T>
Buffer<T> random_buffer(std::int64_t count) {
  Buffer<T> buffer = device_buffer<T>(count);
  fill_normal(buffer.get(), count, nullptr);
  return buffer;
}

inline Buffer<char> pinned_buffer(std::int64_t bytes) {
  void* memory = nullptr;
  check_cuda(cudaMallocHost(&memory, static_cast<std::size_t>(bytes)), "cudaMallocHost");
  return Buffer<char>(static_cast<char*>(memory), [](char* p) { cudaFreeHost(p); });
}

class Stream {
 public:
  // urgent: communication goes before computation when both wait for an SM, as trainers set it.
  explicit Stream(bool urgent = false) {
    int least = 0, greatest = 0;
    check_cuda(cudaDeviceGetStreamPriorityRange(&least, &greatest), "stream priorities");
    check_cuda(
        cudaStreamCreateWithPriority(&stream_, cudaStreamNonBlocking, urgent ? greatest : least),
        "cudaStreamCreate");
  }
  ~Stream() { cudaStreamDestroy(stream_); }
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;
  operator cudaStream_t() const { return stream_; }
  void wait() const { check_cuda(cudaStreamSynchronize(stream_), "cudaStreamSynchronize"); }

 private:
  cudaStream_t stream_ = nullptr;
};

class Event {
 public:
  Event() { check_cuda(cudaEventCreate(&event_), "cudaEventCreate"); }
  ~Event() { cudaEventDestroy(event_); }
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;
  operator cudaEvent_t() const { return event_; }
  void record(cudaStream_t stream) {
    check_cuda(cudaEventRecord(event_, stream), "cudaEventRecord");
  }
  // Both must have happened.
  double seconds_since(const Event& start) const {
    float milliseconds = 0;
    check_cuda(cudaEventElapsedTime(&milliseconds, start, event_), "cudaEventElapsedTime");
    return static_cast<double>(milliseconds) * 1e-3;
  }

 private:
  cudaEvent_t event_ = nullptr;
};

using Kernel = std::function<void(cudaStream_t)>;  // owns its inputs

// Seconds per repetition, back to back on the GPU.
inline double seconds_each(const Kernel& kernel, int repetitions, const Stream& stream) {
  Event start, stop;
  start.record(stream);
  for (int i = 0; i < repetitions; ++i) kernel(stream);
  stop.record(stream);
  stream.wait();
  check_cuda(cudaGetLastError(), "kernel");
  return stop.seconds_since(start) / repetitions;
}

}  // namespace mllmsim::calibrate::cuda
