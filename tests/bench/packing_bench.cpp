// Packing: of the 1.27 M samples of internvl-1.2m, and of from a tenth to ten times as many. Time
// should be linear in samples, and best fit no slower than ISF.
#include <benchmark/benchmark.h>

#include "scenarios/data_sets/data_mixture.hpp"
#include "strategies/data/batching.hpp"
#include "strategies/data/packing/best_fit.hpp"
#include "strategies/data/packing/isf.hpp"
#include "tests/bench/bench.hpp"

namespace mllmsim {
using namespace data;
using namespace scenarios;
namespace {

constexpr PackLimits kLimits{9, 4096};
constexpr std::int64_t kAll = 1'270'000;

// About so many, of all the mixture's sets.
std::vector<Sample> samples(std::int64_t count) {
  Mixture mixture = read_mixture("internvl-1.2m");
  for (MixtureSet& set : mixture.sets)
    set.samples = static_cast<decltype(set.samples)>(static_cast<double>(set.samples) *
                                                     static_cast<double>(count) / kAll);
  return generate(mixture, 1).samples;
}

template <class Run>
void per_sample(benchmark::State& state, Run run) {
  const std::vector<Sample> s = samples(state.range(0));
  for (auto _ : state) benchmark::DoNotOptimize(run(s));
  state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(s.size()));
  bench::size_is(state, s.size());
}

void Growth_Isf(benchmark::State& state) {
  per_sample(state, [](const auto& s) { return pack_isf(s, {.limits = kLimits}); });
}
void BestFit(benchmark::State& state) {
  per_sample(state, [](const auto& s) { return pack_best_fit(s, kLimits); });
}
void LowerBound(benchmark::State& state) {
  per_sample(state, [](const auto& s) { return fewest_packs(s, kLimits); });
}
void RandomBatches(benchmark::State& state) {
  per_sample(state, [](const auto& s) { return make_batches(s, {.ranks = 8}); });
}
void Generate(benchmark::State& state) {
  const Mixture mixture = read_mixture("internvl-1.2m");
  for (auto _ : state) benchmark::DoNotOptimize(generate(mixture, 1));
}
BENCHMARK(Growth_Isf)
    ->Arg(100'000)
    ->Arg(400'000)
    ->Arg(kAll)
    ->Arg(4'000'000)
    ->Arg(12'700'000)
    ->Unit(benchmark::kMillisecond);
BENCHMARK(BestFit)->Arg(kAll)->Unit(benchmark::kMillisecond);
BENCHMARK(LowerBound)->Arg(kAll)->Unit(benchmark::kMillisecond);
BENCHMARK(RandomBatches)->Arg(kAll)->Unit(benchmark::kMillisecond);
BENCHMARK(Generate)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace mllmsim
