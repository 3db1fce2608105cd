// Writing a run's timeline as a trace, from spans in memory to text that is given away. Sizes are
// micro-batches of GPT-3, kernel by kernel; 224 of them are about 1.2 M spans.
#include <benchmark/benchmark.h>

#include "results/run/run_scenario.hpp"
#include "results/trace/trace.hpp"
#include "scenarios/read/scenario.hpp"
#include "tests/bench/bench.hpp"

namespace mllmsim {
namespace {

void Growth_Spans(benchmark::State& state) {
  const auto scenario = scenarios::read_scenario(
      "gpt3-175b-a100x1024", {"granularity=kernel", "gbs=" + std::to_string(8 * state.range(0))});
  const results::RunResult run = results::run_scenario(scenario);
  for (auto _ : state) {
    std::size_t written = 0;
    results::write_trace(run, {}, [&](std::string_view piece) { written += piece.size(); });
    benchmark::DoNotOptimize(written);
  }
  bench::size_is(state, run.spans.size());
}
BENCHMARK(Growth_Spans)->Arg(16)->Arg(64)->Arg(224)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace mllmsim
