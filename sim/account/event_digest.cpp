#include "sim/account/event_digest.hpp"

#include "sim/base/hash.hpp"

namespace mllmsim {

std::uint64_t event_digest(const std::vector<StreamDigest>& streams) {
  Digest digest;
  for (std::size_t s = 0; s < streams.size(); ++s) {
    if (streams[s].empty()) continue;
    digest.add(s);
    digest.add(streams[s].value());
  }
  return digest.value();
}

std::uint64_t event_digest(const Program& program, const Timeline& timeline) {
  std::vector<StreamDigest> streams(std::size_t{program.devices()} * kStreamKinds);
  for (std::size_t t = 0; t < program.tasks().size(); ++t) {
    const Task& task = program.tasks()[t];
    streams[task.stream.value].add(task.kind, timeline.start[t], timeline.end[t], task.bytes);
  }
  return event_digest(streams);
}

}  // namespace mllmsim
