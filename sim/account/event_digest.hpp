// A fingerprint of everything that happened in a simulated step.
//
// Over all tasks in the program's order: device, stream, kind, start, end, bytes. All of these are
// whole numbers, so builds, machines and thread counts that simulate the same have equal digests;
// one event that is a nanosecond off changes it.
#pragma once

#include <cstdint>

#include "sim/kernel/simulation.hpp"

namespace mllmsim {

std::uint64_t event_digest(const Program& program, const Timeline& timeline);

}  // namespace mllmsim
