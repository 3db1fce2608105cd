// The CPU as a device: ranks are threads, launches are function calls, all arithmetic is float32.
// Sizes in bytes of memory-bound tasks still count bf16, so rates of those are not the CPU's.
#include <fmt/core.h>
#include <sys/utsname.h>

#include <Eigen/Core>
#include <chrono>
#include <thread>

#include "cost_models/calibrate/backend.hpp"
#include "cost_models/calibrate/host/host_collectives.hpp"
#include "cost_models/calibrate/host/host_kernels.hpp"
#include "sim/base/files.hpp"
#include "sim/base/text.hpp"

namespace mllmsim::calibrate {
namespace {

using host::Kernel;
using SteadyClock = std::chrono::steady_clock;

template <class Body>
double seconds(const Body& body) {
  const auto start = SteadyClock::now();
  body();
  return std::chrono::duration<double>(SteadyClock::now() - start).count();
}

double seconds_each(const Kernel& kernel, int repetitions) {
  return seconds([&] {
           for (int i = 0; i < repetitions; ++i) kernel();
         }) /
         repetitions;
}

// Larger than the caches of the machine.
class CacheFlush {
 public:
  void operator()() {
    for (std::size_t i = 0; i < buffer_.size(); i += 64) ++buffer_[i];
  }

 private:
  std::vector<char> buffer_ = std::vector<char>(64 << 20);
};

class Burst : public Prepared {
 public:
  Burst(Kernel kernel, CacheFlush& flush) : kernel_(std::move(kernel)), flush_(flush) {}
  std::vector<double> run(int repetitions) override {
    std::vector<double> samples;
    for (int i = 0; i < repetitions; ++i) {
      flush_();
      samples.push_back(seconds(kernel_));
    }
    return samples;
  }

 private:
  Kernel kernel_;
  CacheFlush& flush_;
};

// Anything that yields one figure for many repetitions.
class Average : public Prepared {
 public:
  explicit Average(std::function<double(int)> run) : run_(std::move(run)) {}
  std::vector<double> run(int repetitions) override { return {run_(repetitions)}; }

 private:
  std::function<double(int)> run_;
};

double overlap_slowdown(const Kernel& gemm, host::ThreadGroup& group, int repetitions) {
  const double alone = seconds_each(gemm, repetitions);
  std::atomic<bool> stop = false;
  std::jthread communication([&] { group.run_until(stop); });
  const double beside = seconds_each(gemm, repetitions);
  stop = true;
  return beside / alone;
}

class HostBackend : public Backend {
 public:
  explicit HostBackend(int devices) : devices_(devices) {}

  Header header() const override;
  int devices() const override { return devices_; }
  std::unique_ptr<Prepared> prepare(const Task& task) override {
    return std::visit([this](const auto& t) { return prepared(t); }, task);
  }

 private:
  std::unique_ptr<Prepared> burst(Kernel kernel) {
    return std::make_unique<Burst>(std::move(kernel), flush_);
  }
  static std::unique_ptr<Prepared> average(std::function<double(int)> run) {
    return std::make_unique<Average>(std::move(run));
  }

  std::unique_ptr<Prepared> prepared(const GemmTask& t) {
    if (is_quantised(t.gemm.format)) throw CannotMeasure("no products below 16 bits");
    if (t.mode == Mode::burst) return burst(host::gemm_kernel(t.gemm));
    return average([kernel = host::gemm_kernel(t.gemm)](int n) { return seconds_each(kernel, n); });
  }
  std::unique_ptr<Prepared> prepared(const AttentionTask& t) {
    return burst(host::attention_kernel(t));
  }
  std::unique_ptr<Prepared> prepared(const MemoryTask& t) { return burst(host::memory_kernel(t)); }
  std::unique_ptr<Prepared> prepared(const CopyTask& t) { return burst(host::copy_kernel(t)); }
  std::unique_ptr<Prepared> prepared(const CollectiveTask& t) {
    const auto group = std::make_shared<host::ThreadGroup>(t.collective);
    return average([group](int n) { return group->run(n); });
  }
  std::unique_ptr<Prepared> prepared(const P2pTask& t) {
    return average([bytes = t.bytes](int n) { return host::message_seconds(bytes, n); });
  }
  std::unique_ptr<Prepared> prepared(const LaunchTask&) {
    constexpr int kCalls = 1000;
    return average([nothing = Kernel([] {})](int n) { return seconds_each(nothing, n * kCalls); });
  }
  std::unique_ptr<Prepared> prepared(const OverlapTask& t) {
    const auto group = std::make_shared<host::ThreadGroup>(t.collective);
    return average([group, gemm = host::gemm_kernel(t.gemm)](int n) {
      return overlap_slowdown(gemm, *group, n);
    });
  }

  int devices_;
  CacheFlush flush_;
};

// The value after "name : " in /proc/cpuinfo.
std::string cpu_info(const std::string& name) {
  const std::string text = read_file("/proc/cpuinfo", kLargeFile);
  for (std::string_view rest = text; !rest.empty();) {
    const std::string_view line = take_line(rest);
    const std::size_t colon = line.find(": ");
    if (line.starts_with(name) && colon != std::string_view::npos)
      return std::string(line.substr(colon + 2));
  }
  return "0";
}

Header HostBackend::header() const {
  utsname system{};
  ::uname(&system);
  Header h;
  h.identity = {{"gpu", "host: " + cpu_info("model name")},
                {"driver", fmt::format("{} {}", system.sysname, system.release)},
                {"cuda", "none"},
                {"cublas", fmt::format("Eigen {}.{}.{}, one core", EIGEN_WORLD_VERSION,
                                       EIGEN_MAJOR_VERSION, EIGEN_MINOR_VERSION)},
                {"nccl", "std::thread"},
                {"backend", "host"},
                {"attention_kernel", "materialised"},
                {"precision", "float32"}};
  h.clock_mhz = static_cast<int>(std::strtod(cpu_info("cpu MHz").c_str(), nullptr));
  return h;
}

}  // namespace

std::unique_ptr<Backend> make_host_backend(int devices) {
  const int there = std::max(2, static_cast<int>(std::thread::hardware_concurrency()));
  return std::make_unique<HostBackend>(devices > 0 ? devices : there);
}

}  // namespace mllmsim::calibrate
