// Packing the 1.27 M samples of internvl-1.2m, and a tenth of them: time should be linear in
// samples, and best fit no slower than ISF.
#include <benchmark/benchmark.h>

#include "scenarios/data_sets/data_mixture.hpp"
#include "strategies/data/batching.hpp"
#include "strategies/data/packing/best_fit.hpp"
#include "strategies/data/packing/isf.hpp"

namespace mllmsim {
using namespace data;
using namespace scenarios;
namespace {

constexpr PackLimits kLimits{9, 4096};

// A tenth of every set, or all.
const std::vector<Sample>& samples(std::int64_t divisor) {
  const auto make = [](std::int64_t by) {
    Mixture mixture = read_mixture("internvl-1.2m");
    for (MixtureSet& set : mixture.sets) set.samples /= by;
    return generate(mixture, 1).samples;
  };
  static const std::vector<Sample> all = make(1), tenth = make(10);
  return divisor == 1 ? all : tenth;
}

template <class Run>
void per_sample(benchmark::State& state, Run run) {
  const std::vector<Sample>& s = samples(state.range(0));
  for (auto _ : state) benchmark::DoNotOptimize(run(s));
  state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(s.size()));
}

void Isf(benchmark::State& state) {
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
BENCHMARK(Isf)->Arg(10)->Arg(1)->Unit(benchmark::kMillisecond);
BENCHMARK(BestFit)->Arg(10)->Arg(1)->Unit(benchmark::kMillisecond);
BENCHMARK(LowerBound)->Arg(1)->Unit(benchmark::kMillisecond);
BENCHMARK(RandomBatches)->Arg(1)->Unit(benchmark::kMillisecond);
BENCHMARK(Generate)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace mllmsim
