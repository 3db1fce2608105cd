#include "strategies/lower/activation_offload.hpp"

#include <algorithm>
#include <utility>

namespace mllmsim::lower {
namespace {

Time time_of(const Program& program, const Segment& segment) {
  Time sum{};
  for (std::uint32_t t = segment.first.value; t <= segment.last.value; ++t) {
    const Task& task = program.tasks()[t];
    if (Program::kind_of(task.stream) != StreamKind::dp) sum += task.duration;
  }
  return sum;
}

}  // namespace

std::vector<int> offload_windows(int blocks, int offloaded) {
  std::vector<int> last;
  for (int i = 0; i < offloaded; ++i)
    last.push_back(blocks / offloaded * (i + 1) - 1 + std::min(i + 1, blocks % offloaded));
  return last;
}

ActivationOffload::ActivationOffload(StepBuilder& step, DeviceId device, const Pass& pass,
                                     std::vector<Bytes> saved)
    : step_(step),
      device_(device),
      pass_(pass),
      saved_(std::move(saved)),
      last_(offload_windows(static_cast<int>(saved_.size()),
                            step.job().software.cpu_offloading_num_layers)) {}

// A backward passes blocks from the last one on: window i begins with the block that ends it in a
// forward.
void ActivationOffload::passed(Segment& segment) {
  const int block = pass_.forward ? passed_ : static_cast<int>(saved_.size()) - 1 - passed_;
  ++passed_;
  const std::size_t window = pass_.forward ? window_ : last_.size() - 1 - window_;
  const int first = window == 0 ? 0 : last_[window - 1] + 1;
  if (!pass_.forward && block == last_[window])
    step_.program().add_memory(segment.first, saved_[window].value, 0);
  computed_ += time_of(step_.program(), segment);
  if (block == (pass_.forward ? last_[window] : first)) end_window(window, segment);
}

void ActivationOffload::end_window(std::size_t window, Segment& segment) {
  const Bytes bytes = saved_[window];
  const Time copy = to_time(bytes / step_.job().cluster.host_link_bandwidth);
  if (copy > computed_) {
    Task task = step_.task_of(pass_, device_, StreamKind::compute, TaskKind::host,
                              step_.label("activations to or from the CPU", ""));
    task.duration = copy - computed_;
    segment.last = step_.add_after(segment.last, task);
  }
  if (pass_.forward) step_.program().add_memory(segment.last, 0, -bytes.value);
  computed_ = {};
  ++window_;
}

}  // namespace mllmsim::lower
