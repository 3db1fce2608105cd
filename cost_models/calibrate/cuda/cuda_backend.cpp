// The GPUs of a node. Compute is measured on device 0; groups take devices 0 to n - 1.
#include <fmt/core.h>

#include <algorithm>
#include <filesystem>
#include <regex>

#include "cost_models/calibrate/cuda/communicators.hpp"
#include "cost_models/calibrate/cuda/tasks.hpp"
#include "sim/base/files.hpp"

namespace mllmsim::calibrate {
namespace {

using namespace cuda;

int attribute(cudaDeviceAttr name) {
  int value = 0;
  check_cuda(cudaDeviceGetAttribute(&value, name, 0), "cudaDeviceGetAttribute");
  return value;
}

// "CUDA 13.0" from 13000.
std::string cuda_version(int code) { return fmt::format("{}.{}", code / 1000, code % 1000 / 10); }

// The driver's own version, which the runtime does not know.
std::string driver_version() {
  constexpr const char* kFile = "/proc/driver/nvidia/version";
  const std::string text = std::filesystem::exists(kFile) ? read_file(kFile, kSmallFile) : "";
  const std::string line = text.substr(0, text.find('\n'));
  std::smatch found;
  if (std::regex_search(line, found, std::regex(R"((\d+\.\d+(\.\d+)?))"))) return found[1];
  int supported = 0;
  check_cuda(cudaDriverGetVersion(&supported), "cudaDriverGetVersion");
  return "CUDA " + cuda_version(supported);
}

// Overwrites the L2 cache several times over.
class CacheFlush {
 public:
  CacheFlush()
      : bytes_(4 * static_cast<std::size_t>(std::max(16 << 20, attribute(cudaDevAttrL2CacheSize)))),
        buffer_(device_buffer<char>(static_cast<std::int64_t>(bytes_))) {}
  void operator()(cudaStream_t stream) const {
    check_cuda(cudaMemsetAsync(buffer_.get(), 0, bytes_, stream), "flush");
  }

 private:
  std::size_t bytes_;
  Buffer<char> buffer_;
};

// Each repetition is timed by its own events. All are queued before the first has ended, so the
// flush hides the launch: what is timed is the GPU's part.
class Burst : public Prepared {
 public:
  Burst(Kernel kernel, const CacheFlush& flush) : kernel_(std::move(kernel)), flush_(flush) {}
  std::vector<double> run(int repetitions) override {
    std::vector<Event> starts(static_cast<std::size_t>(repetitions)), stops(starts.size());
    for (std::size_t i = 0; i < starts.size(); ++i) {
      flush_(stream_);
      starts[i].record(stream_);
      kernel_(stream_);
      stops[i].record(stream_);
    }
    stream_.wait();
    check_cuda(cudaGetLastError(), "kernel");
    std::vector<double> samples;
    for (std::size_t i = 0; i < starts.size(); ++i)
      samples.push_back(stops[i].seconds_since(starts[i]));
    return samples;
  }

 private:
  Kernel kernel_;
  const CacheFlush& flush_;
  Stream stream_;
};

class BackToBack : public Prepared {
 public:
  BackToBack(Kernel kernel, int kernels_each)
      : kernel_(std::move(kernel)), kernels_each_(kernels_each) {}
  std::vector<double> run(int repetitions) override {
    return {seconds_each(kernel_, repetitions * kernels_each_, stream_)};
  }

 private:
  Kernel kernel_;
  int kernels_each_;
  Stream stream_;
};

class Together : public Prepared {
 public:
  explicit Together(std::unique_ptr<GroupWork> work) : work_(std::move(work)) {}
  std::vector<double> run(int repetitions) override { return work_->run(repetitions); }

 private:
  std::unique_ptr<GroupWork> work_;
};

// GEMMs alone, then beside enough repetitions of the collective to outlast them.
class Overlap : public Prepared {
 public:
  Overlap(Kernel gemm, std::unique_ptr<GroupWork> work)
      : gemm_(std::move(gemm)), work_(std::move(work)) {
    check_cuda(cudaDeviceSynchronize(), "preparation");
    seconds_each(gemm_, 2, stream_);
    work_->run(2);
    collective_s_ = work_->run(3).at(0);
  }
  std::vector<double> run(int repetitions) override {
    const double alone = seconds_each(gemm_, repetitions, stream_);
    const double beside_at_most = 2 * alone * repetitions;
    Event started;
    work_->start(2 + static_cast<int>(beside_at_most / collective_s_), started);
    check_cuda(cudaStreamWaitEvent(stream_, started, 0), "cudaStreamWaitEvent");
    const double beside = seconds_each(gemm_, repetitions, stream_);
    work_->wait();
    return {beside / alone};
  }

 private:
  Kernel gemm_;
  std::unique_ptr<GroupWork> work_;
  Stream stream_;
  double collective_s_ = 0;
};

class CudaBackend : public Backend {
 public:
  CudaBackend(int devices, const Rendezvous& rendezvous)
      : devices_(devices), communicators_(devices, rendezvous) {}

  int devices() const override { return devices_; }
  double agree(double value) override { return communicators_.agree(value); }
  std::unique_ptr<Prepared> prepare(const Task& task) override {
    auto prepared = std::visit([this](const auto& t) { return this->make(t); }, task);
    check_cuda(cudaDeviceSynchronize(), "preparation");  // inputs are filled on another stream
    return prepared;
  }

  Header header() const override {
    cudaDeviceProp properties{};
    int runtime = 0;
    check_cuda(cudaGetDeviceProperties(&properties, 0), "cudaGetDeviceProperties");
    check_cuda(cudaRuntimeGetVersion(&runtime), "cudaRuntimeGetVersion");
    return {{{"gpu", properties.name},
             {"driver", driver_version()},
             {"cuda", cuda_version(runtime)},
             {"cublas", cublas_.version()},
             {"nccl", Communicators::version()},
             {"backend", "cuda"},
             {"attention_kernel", attention_kernel_name()},
             {"precision", "bf16"}},
            attribute(cudaDevAttrClockRate) / 1000};
  }

 private:
  std::unique_ptr<Prepared> burst(Kernel kernel) {
    return std::make_unique<Burst>(std::move(kernel), flush_);
  }
  std::unique_ptr<Prepared> make(const GemmTask& t) {
    if (is_quantised(t.gemm.format) && t.gemm.batch > 1)
      throw CannotMeasure("grouped products are measured in bf16");
    Kernel kernel =
        is_quantised(t.gemm.format) ? fp8_gemm_kernel(t.gemm) : gemm_kernel(t.gemm, cublas_);
    if (t.mode == Mode::burst) return burst(std::move(kernel));
    return std::make_unique<BackToBack>(std::move(kernel), 1);
  }
  std::unique_ptr<Prepared> make(const AttentionTask& t) { return burst(attention_kernel(t)); }
  std::unique_ptr<Prepared> make(const MemoryTask& t) { return burst(memory_kernel(t)); }
  std::unique_ptr<Prepared> make(const CopyTask& t) { return burst(copy_kernel(t)); }
  std::unique_ptr<Prepared> make(const CollectiveTask& t) {
    return std::make_unique<Together>(communicators_.collective(t.collective));
  }
  std::unique_ptr<Prepared> make(const P2pTask& t) {
    return std::make_unique<Together>(communicators_.message(t));
  }
  std::unique_ptr<Prepared> make(const LaunchTask&) {
    return std::make_unique<BackToBack>(launch_empty, 1000);
  }
  std::unique_ptr<Prepared> make(const OverlapTask& t) {
    return std::make_unique<Overlap>(gemm_kernel(t.gemm, cublas_),
                                     communicators_.collective(t.collective));
  }

  int devices_;
  CublasHandle cublas_;
  CacheFlush flush_;
  Communicators communicators_;
};

}  // namespace

std::unique_ptr<Backend> make_cuda_backend(int devices, const Rendezvous& rendezvous) {
  int there = 0;
  const cudaError_t error = cudaGetDeviceCount(&there);  // 35: no driver, 100: no device
  if (error != cudaSuccess)
    throw NoDevice(
        fmt::format("no usable GPU: {} (CUDA error {}); --backend host measures this "
                    "CPU, --plan needs none",
                    cudaGetErrorString(error), static_cast<int>(error)));
  if (there < 1) throw NoDevice("no GPU");
  if (devices > there)
    throw UserError("command line", "--gpus", fmt::format("this node has {}", there));
  return std::make_unique<CudaBackend>(devices > 0 ? devices : there, rendezvous);
}

}  // namespace mllmsim::calibrate
