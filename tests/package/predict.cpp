// What would OmniBal gain on more GPUs? The library in about 20 lines.
#include <mllmsim/mllmsim.hpp>

#include <cstdio>

int main() {
  using namespace mllmsim;
  const auto predict = [](const char* strategy, int nodes) {
    const auto scenario = scenarios::read_scenario(
        "internvl-6b-20b-a100x32",
        {std::string("strategy.name=") + strategy, "cluster.nodes=" + std::to_string(nodes)});
    return simulate(scenario.job,
                    *costs::read_kernel_costs(scenario.calibration, scenario.job.cluster));
  };
  for (int nodes : {4, 8, 16}) {
    const Outcome baseline = predict("baseline", nodes), omnibal = predict("omnibal", nodes);
    std::printf("%3d GPUs: %5.1f GPU-days, OmniBal %5.1f: %.2f times as fast\n", 8 * nodes,
                baseline.gpu_days, omnibal.gpu_days, baseline.gpu_days / omnibal.gpu_days);
  }
}
