// Stands in for the CUDA backend where CMake found no CUDA.
#include "cost_models/calibrate/backend.hpp"

namespace mllmsim::calibrate {

std::unique_ptr<Backend> make_cuda_backend(int, const Rendezvous&) {
  throw NoDevice("built without CUDA; --backend host measures this CPU instead");
}

}  // namespace mllmsim::calibrate
