#include "sim/account/event_digest.hpp"

#include "sim/base/hash.hpp"

namespace mllmsim {

std::uint64_t event_digest(const Program& program, const Timeline& timeline) {
  Digest digest;
  for (std::size_t t = 0; t < program.tasks().size(); ++t) {
    const Task& task = program.tasks()[t];
    digest.add(std::uint64_t{task.stream.value} << 8 | static_cast<std::uint64_t>(task.kind));
    digest.add(static_cast<std::uint64_t>(timeline.start[t].value));
    digest.add(static_cast<std::uint64_t>(timeline.end[t].value));
    digest.add(static_cast<std::uint64_t>(task.bytes.value));
  }
  return digest.value();
}

}  // namespace mllmsim
