// What the benchmarks share: counters that bench.py reads.
//
//   tasks, per_task   how many a program has, and the time per one
//   size              what a Growth_* benchmark varies, the x of its slope
#pragma once

#include <benchmark/benchmark.h>

#include <cstddef>

namespace mllmsim::bench {

inline void per_task(benchmark::State& state, std::size_t tasks) {
  const auto n = static_cast<double>(tasks);
  state.counters["tasks"] = n;
  state.counters["per_task"] = benchmark::Counter(
      n, benchmark::Counter::kIsIterationInvariantRate | benchmark::Counter::kInvert);
}

inline void size_is(benchmark::State& state, std::size_t size) {
  state.counters["size"] = static_cast<double>(size);
}

}  // namespace mllmsim::bench
