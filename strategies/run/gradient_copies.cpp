#include "strategies/run/gradient_copies.hpp"

#include <algorithm>
#include <map>

namespace mllmsim::run {
namespace {

struct Window {
  Time start{}, end{};
};
struct Windows {
  Window reduction, update;  // the last collective of gradients; the optimizer's kernels
};
using Device = std::pair<int, int>;  // replica, stage

std::map<Device, Windows> windows_of(const std::vector<Span>& spans) {
  std::map<Device, Windows> out;
  for (const Span& s : spans) {
    if (s.kind == SpanKind::dp_reduce_scatter) {
      Window& w = out[{s.replica, s.stage}].reduction;
      if (s.end > w.end) w = {s.start, s.end};
    } else if (s.kind == SpanKind::optimizer) {
      Window& w = out[{s.replica, s.stage}].update;
      w.start = w.end == Time{} ? s.start : std::min(w.start, s.start);
      w.end = std::max(w.end, s.end);
    }
  }
  return out;
}

// The first row from `time` on; one is made there if memory does not change then.
std::size_t row_at(std::vector<MemoryChange>& rows, Time time) {
  const auto at = std::ranges::lower_bound(rows, time, {}, &MemoryChange::time);
  const auto index = static_cast<std::size_t>(at - rows.begin());
  if ((at != rows.end() && at->time == time) || index == 0) return index;
  MemoryChange row = rows[index - 1];
  row.time = time;
  rows.insert(at, row);
  return index;
}

void add(std::vector<MemoryChange>& rows, const Window& window, Bytes bytes) {
  if (bytes.value <= 0 || window.end <= window.start) return;
  const std::size_t first = row_at(rows, window.start);
  const std::size_t end = row_at(rows, window.end);
  for (std::size_t i = first; i < end; ++i) {
    rows[i].bytes += bytes;
    rows[i].copies += bytes;
  }
}

}  // namespace

void add_copies(const std::vector<Span>& spans, const std::vector<step::StepEnd>& ends,
                std::vector<MemoryChange>& memory) {
  const std::map<Device, Windows> windows = windows_of(spans);
  std::vector<MemoryChange> out;
  for (std::size_t i = 0; i < memory.size();) {
    const Device device{memory[i].replica, memory[i].stage};
    std::vector<MemoryChange> rows;
    for (; i < memory.size() && Device{memory[i].replica, memory[i].stage} == device; ++i)
      rows.push_back(memory[i]);
    if (const auto found = windows.find(device); found != windows.end()) {
      const step::StepEnd& end = ends[static_cast<std::size_t>(device.second)];
      add(rows, found->second.reduction, end.while_reducing());
      add(rows, found->second.update, end.while_updating());
    }
    out.insert(out.end(), rows.begin(), rows.end());
  }
  memory = std::move(out);
}

}  // namespace mllmsim::run
