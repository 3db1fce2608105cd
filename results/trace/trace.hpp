// A run's timeline as a Chrome/Perfetto trace, shaped like those of PyTorch's profiler (Kineto) so
// that its tools open it.
//
// A process is a rank (the first tp rank of a lane), a thread a stream, of the same number on every
// rank. Compute and communication are events of category "kernel"; collectives have NCCL's names
// and Kineto's fields (kineto.hpp), sizes where the spans have them. Bubbles are annotations on a
// thread of their own and a counter by kind; memory is a counter. Arrows lead from each send of the
// pipeline and of encoders beside it to its receive (arrows.hpp). Times are microseconds from the
// start of the step. What Kineto's traces have and ours do not: CPU operators and launches.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "results/charts/lanes.hpp"

namespace mllmsim::results {

// Piece by piece, about a megabyte at a time: all of it is several times as large as the spans.
void write_trace(const RunResult& run, const charts::Choice& choice,
                 const std::function<void(std::string_view)>& to);
std::string to_trace(const RunResult& run, const charts::Choice& choice);

}  // namespace mllmsim::results
