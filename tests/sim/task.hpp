// A task of a given length, for programs written by hand.
#pragma once

#include "sim/kernel/program.hpp"

namespace mllmsim {

inline Task task(std::uint32_t device, StreamKind stream, std::int64_t ns) {
  Task t;
  t.stream = Program::stream({device}, stream);
  t.duration = Time{ns};
  return t;
}

}  // namespace mllmsim
