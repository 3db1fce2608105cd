// The event kernel on 1F1B of 64 stages x 512 micro-batches, beside the least that could be done:
// a sweep over the same passes that knows the schedule, with rows of all tasks built.
#include <benchmark/benchmark.h>

#include "sim/account/bubbles.hpp"
#include "sim/kernel/schedule.hpp"
#include "sim/kernel/simulation.hpp"
#include "strategies/lower/lower.hpp"
#include "strategies/plans/partition.hpp"
#include "tests/bench/bench.hpp"

namespace mllmsim {
namespace {

constexpr Time kForward{1'000'000}, kBackward{2'000'000}, kTransfer{10'000};

Job pipeline(int stages, std::int64_t micro_batches) {
  Job job;
  job.parallelism.pipeline_model_parallel_size = stages;
  job.parallelism.global_batch_size = micro_batches;
  job.given_times =
      GivenTimes{{to_seconds(kForward)}, {to_seconds(kBackward)}, to_seconds(kTransfer)};
  return job;
}

Program program_of(int stages, std::int64_t micro_batches) {
  const Job job = pipeline(stages, micro_batches);
  return lower::to_program(job, plans::plan_of_given_times(job), *job.given_times);
}

// What any simulator of this has to do. Each rank runs its passes in order; a pass waits for what
// its neighbour sends; a row per pass, send and receive.
class BareSweep {
 public:
  BareSweep(int stages, std::int64_t micro_batches) : micro_batches_(micro_batches) {
    for (int rank = 0; rank < stages; ++rank)
      orders_.push_back(schedule(ScheduleKind::one_f_one_b, stages, 1, micro_batches, rank));
  }

  struct Row {
    Time start, end;
    std::uint32_t stage = 0, micro_batch = 0;
    TaskKind kind = TaskKind::forward;
  };

  std::vector<Row> run() {
    const std::size_t stages = orders_.size(), all = static_cast<std::size_t>(micro_batches_);
    rows_.reserve(6 * stages * all);
    arrived_[0].assign(stages * all, kNever);
    arrived_[1].assign(stages * all, kNever);
    next_.assign(stages, 0);
    free_.assign(stages, Time{});
    std::fill_n(arrived_[0].begin(), all, Time{});
    std::fill_n(arrived_[1].end() - static_cast<std::ptrdiff_t>(all), all, Time{});
    for (bool moved = true; moved;) {
      moved = false;
      for (std::size_t rank = 0; rank < stages; ++rank) moved |= advance(rank, stages, all);
    }
    return std::move(rows_);
  }

 private:
  static constexpr Time kNever{-1};

  bool advance(std::size_t rank, std::size_t stages, std::size_t all) {
    const std::size_t before = next_[rank];
    const std::vector<Pass>& order = orders_[rank];
    for (; next_[rank] < order.size(); ++next_[rank]) {
      const Pass& pass = order[next_[rank]];
      const Time input = arrived_[pass.forward ? 0 : 1][rank * all + pass.micro_batch];
      if (input == kNever) break;
      const Time start = std::max(free_[rank], input);
      const Time end = free_[rank] = start + (pass.forward ? kForward : kBackward);
      const auto stage = static_cast<std::uint32_t>(rank);
      rows_.push_back({start, end, stage, pass.micro_batch,
                       pass.forward ? TaskKind::forward : TaskKind::backward});
      if (pass.forward ? rank + 1 == stages : rank == 0) continue;
      const std::size_t to = pass.forward ? rank + 1 : rank - 1;
      arrived_[pass.forward ? 0 : 1][to * all + pass.micro_batch] = end + kTransfer;
      rows_.push_back({end, end + kTransfer, stage, pass.micro_batch, TaskKind::pp_send});
      rows_.push_back({end, end + kTransfer, static_cast<std::uint32_t>(to), pass.micro_batch,
                       TaskKind::pp_recv});
    }
    return next_[rank] != before;
  }

  std::int64_t micro_batches_;
  std::vector<std::vector<Pass>> orders_;
  std::array<std::vector<Time>, 2> arrived_;  // forward, backward: by stage and micro-batch
  std::vector<std::size_t> next_;
  std::vector<Time> free_;
  std::vector<Row> rows_;
};

void Kernel_BareSweep(benchmark::State& state) {
  BareSweep sweep(static_cast<int>(state.range(0)), state.range(1));
  for (auto _ : state) benchmark::DoNotOptimize(sweep.run());
  bench::per_task(state, sweep.run().size());
}
void Kernel_Simulate(benchmark::State& state) {
  const Program program = program_of(static_cast<int>(state.range(0)), state.range(1));
  for (auto _ : state) benchmark::DoNotOptimize(simulate(program, {}));
  bench::per_task(state, program.tasks().size());
}
void Kernel_Lower(benchmark::State& state) {
  for (auto _ : state)
    benchmark::DoNotOptimize(program_of(static_cast<int>(state.range(0)), state.range(1)));
  bench::per_task(state,
                  program_of(static_cast<int>(state.range(0)), state.range(1)).tasks().size());
}
void Kernel_Account(benchmark::State& state) {
  const Program program = program_of(static_cast<int>(state.range(0)), state.range(1));
  const Timeline timeline = simulate(program, {});
  for (auto _ : state) benchmark::DoNotOptimize(account(program, timeline));
  bench::per_task(state, program.tasks().size());
}
BENCHMARK(Kernel_BareSweep)->Args({64, 512})->Unit(benchmark::kMillisecond);
BENCHMARK(Kernel_Simulate)->Args({64, 512})->Unit(benchmark::kMillisecond);
BENCHMARK(Kernel_Lower)->Args({64, 512})->Unit(benchmark::kMillisecond);
BENCHMARK(Kernel_Account)->Args({64, 512})->Unit(benchmark::kMillisecond);

// Growth: the second argument alone, 8 stages.
void Growth_Tasks(benchmark::State& state) {
  const Program program = program_of(8, state.range(0));
  for (auto _ : state) benchmark::DoNotOptimize(simulate(program, {}));
  bench::size_is(state, program.tasks().size());
}
void Growth_Ranks(benchmark::State& state) {
  const Program program = program_of(static_cast<int>(state.range(0)), 256);
  for (auto _ : state) benchmark::DoNotOptimize(simulate(program, {}));
  bench::size_is(state, static_cast<std::size_t>(state.range(0)));
}
BENCHMARK(Growth_Tasks)->RangeMultiplier(4)->Range(64, 16384)->Unit(benchmark::kMillisecond);
BENCHMARK(Growth_Ranks)->RangeMultiplier(2)->Range(8, 256)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace mllmsim
