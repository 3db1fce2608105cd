// Built without NCCL: messages inside a node are peer copies, collectives are not measured.
#include "cost_models/calibrate/cuda/communicators.hpp"

namespace mllmsim::calibrate::cuda {
namespace {

class PeerCopy : public GroupWork {
 public:
  explicit PeerCopy(std::int64_t bytes) : bytes_(static_cast<std::size_t>(bytes)) {
    from_ = device_buffer<char>(bytes);
    check_cuda(cudaSetDevice(1), "cudaSetDevice");
    to_ = device_buffer<char>(bytes);
    check_cuda(cudaSetDevice(0), "cudaSetDevice");
    const cudaError_t error = cudaDeviceEnablePeerAccess(1, 0);
    if (error != cudaErrorPeerAccessAlreadyEnabled) check_cuda(error, "peer access");
    cudaGetLastError();
  }
  std::vector<double> run(int repetitions) override {
    return {seconds_each(
        [this](cudaStream_t stream) {
          check_cuda(cudaMemcpyPeerAsync(to_.get(), 1, from_.get(), 0, bytes_, stream),
                     "cudaMemcpyPeerAsync");
        },
        repetitions, stream_)};
  }
  void start(int, Event&) override {}
  void wait() override {}

 private:
  std::size_t bytes_;
  Buffer<char> from_, to_;
  Stream stream_;
};

}  // namespace

class Communicators::Group {};

Communicators::Communicators(int devices, Rendezvous rendezvous)
    : devices_(devices), rendezvous_(std::move(rendezvous)) {
  if (rendezvous_.nodes > 1) throw NoDevice("several nodes need NCCL; built without it");
}
Communicators::~Communicators() = default;

std::unique_ptr<GroupWork> Communicators::collective(const costs::Collective&) {
  throw CannotMeasure("built without NCCL");
}

std::unique_ptr<GroupWork> Communicators::message(const P2pTask& t) {
  if (devices_ < 2) throw CannotMeasure("one GPU only");
  return std::make_unique<PeerCopy>(t.bytes);
}

double Communicators::agree(double value) { return value; }
std::string Communicators::version() { return "none"; }

}  // namespace mllmsim::calibrate::cuda
