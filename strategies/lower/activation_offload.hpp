// Activations of some blocks in the CPU's memory from their forward to their backward (Software::
// cpu_offloading_num_layers), as Transformer Engine moves them (cpu_offload.py).
//
// Of L blocks the first N are offloaded. Their copies are spread over all L: block i travels in the
// i-th of N windows of L / N blocks (the first L mod N have one more), and at the end of a window
// computing and copying wait for each other:
//
//   time of a window = max(its blocks, the activations of block i / bandwidth of the GPU's link)
//
// A backward goes through the windows the other way round and brings block i back in window i.
// Memory is given back at the end of a window, and taken at its start in the backward.
//
// Left out: what copies take of the GPU's memory bandwidth; what a window waits for parameters of
// zero_stage 3, in which copies would go on; that since Transformer Engine 2.10 every block has a
// deadline of its own (block i leaves before block L - N + i begins), so that there is one less.
#pragma once

#include <vector>

#include "cost_models/layers/layer_costs.hpp"
#include "strategies/lower/step_builder.hpp"

namespace mllmsim::lower {

// The last block of each window.
std::vector<int> offload_windows(int blocks, int offloaded);

class ActivationOffload {
 public:
  // saved: what each of the LLM's blocks keeps for its backward.
  ActivationOffload(StepBuilder& step, DeviceId device, const Pass& pass, std::vector<Bytes> saved);

  // The next of these blocks, which computes in `segment`. Lengthens that where a window ends that
  // its copies outlast.
  void passed(Segment& segment);

 private:
  void end_window(std::size_t window, Segment& segment);

  StepBuilder& step_;
  DeviceId device_;
  Pass pass_;
  std::vector<Bytes> saved_;
  std::vector<int> last_;   // of each window
  int passed_ = 0;          // blocks
  std::size_t window_ = 0;  // windows that have ended
  Time computed_{};         // in this one
};

}  // namespace mllmsim::lower
