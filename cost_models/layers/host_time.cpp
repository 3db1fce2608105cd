// A GPU that waits for its CPU. Kernels of a layer are launched one after another, ahead of the
// GPU:
//
//   time = max(all launches, all kernels)
//
// Where experts take as many rows as are routed to them, the CPU first waits for the GPU to say how
// many (dropless Megatron-Core: tokens_per_expert is copied to the host before the first kernel
// that needs it), and where samples are turned one by one, how long each is. From one wait to the
// next, which may be in the next layer, it runs ahead: each kernel starts when it is launched and
// the one before is done,
//
//   time = sum over waits of max over kernels k up to the next (launches up to k + kernels from k)
//
// Passes that hide exchanges behind another's kernels take at least their launches. What is
// recomputed and the backward behind it are launched in a row. With launches that block, the CPU
// never runs ahead: each kernel takes its launch as well.
#include <algorithm>
#include <span>
#include <vector>

#include "cost_models/layers/layer_costs.hpp"

namespace mllmsim::costs {
namespace {

using TimedKernels = std::span<TimedKernel* const>;

Seconds longest_chain(TimedKernels kernels, Seconds each, Seconds each_expert) {
  Seconds launched{}, left{};
  for (const TimedKernel* k : kernels) left += to_seconds(k->time);
  Seconds most = left;
  for (const TimedKernel* k : kernels) {
    launched += each * k->launches + each_expert * k->expert_launches;
    most = std::max(most, launched + left);
    left -= to_seconds(k->time);
  }
  return most;
}

// Of kernels that begin with one that the CPU waits before.
Time from_wait_to_wait(TimedKernels kernels, Seconds each, Seconds each_expert) {
  Seconds sum{};
  for (std::size_t from = 0; from < kernels.size();) {
    std::size_t to = from + 1;
    while (to < kernels.size() && !kernels[to]->after_wait) ++to;
    sum += longest_chain(kernels.subspan(from, to - from), each, each_expert);
    from = to;
  }
  return to_time(sum);
}

}  // namespace

Time LayerCosts::on_host(const KernelTotals& pass) const {
  return to_time(software_.host_time_per_kernel * static_cast<double>(pass.launches) +
                 software_.host_time_per_expert_kernel * static_cast<double>(pass.expert_launches));
}

bool LayerCosts::host_bound(const KernelTotals& pass) const {
  return software_.launch_blocking || (!software_.cuda_graphs && on_host(pass) > pass.time);
}

// Each kernel takes its share of the longer time.
void LayerCosts::wait_for_host(std::initializer_list<std::vector<TimedKernel>*> lists) const {
  const Seconds each = software_.host_time_per_kernel;
  const Seconds each_expert = software_.host_time_per_expert_kernel;
  std::vector<TimedKernel*> kernels;
  KernelTotals sum;
  for (auto* list : lists) {
    sum += totals(*list);
    for (TimedKernel& k : *list) kernels.push_back(&k);
  }
  if (software_.launch_blocking) {
    for (TimedKernel* k : kernels) {
      k->time += to_time(each * k->launches + each_expert * k->expert_launches);
      k->source = Source::estimate;
    }
    return;
  }
  if (software_.cuda_graphs || sum.time == Time{}) return;
  const auto waiting = std::find_if(kernels.begin(), kernels.end(),
                                    [](const TimedKernel* k) { return k->after_wait; });
  Time time = std::max(sum.time, on_host(sum));
  if (waiting != kernels.end()) {
    std::rotate(kernels.begin(), waiting, kernels.end());
    time = std::max(time, from_wait_to_wait(kernels, each, each_expert));
  }
  const Time hidden = std::min(sum.beside_other_pass, std::max(Time{}, time - on_host(sum)));
  if (time == sum.time && hidden == sum.beside_other_pass) return;
  const double longer = time / sum.time;
  const double still_hidden = sum.beside_other_pass == Time{} ? 0 : hidden / sum.beside_other_pass;
  for (TimedKernel* k : kernels) {
    if (longer > 1) {
      k->time = to_time(to_seconds(k->time) * longer);
      k->source = Source::estimate;
    }
    k->beside_other_pass = to_time(to_seconds(k->beside_other_pass) * still_hidden);
  }
}

}  // namespace mllmsim::costs
