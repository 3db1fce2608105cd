#include "results/sensitivity.hpp"

#include <tbb/parallel_for.h>

#include "results/calibration_cache.hpp"

namespace mllmsim {
namespace {

constexpr double kSlower = 1.1;

RunResult run_with_slower(std::size_t part, Scenario scenario, const CalibrationCache& cache) {
  CostFactors f;
  double* const factors[] = {&f.gemm,          &f.attention,           &f.memory_bound,
                             &f.optimizer,     &f.collectives_in_node, &f.collectives_across_nodes,
                             &f.point_to_point};
  if (part < std::size(factors))
    *factors[part] = kSlower;
  else
    scenario.job.software.host_time_per_kernel =
        scenario.job.software.host_time_per_kernel * kSlower;
  return cache.run(scenario, f);
}

}  // namespace

std::vector<SensitivityRow> sensitivity(std::span<const PublishedFamily> families) {
  std::vector<ValidationPoint> chosen;
  for (ValidationPoint& p : read_points(families))
    if (p.point->sensitivity) chosen.push_back(std::move(p));
  const CalibrationCache cache(chosen);
  std::vector<SensitivityRow> rows(chosen.size());
  tbb::parallel_for(std::size_t{0}, chosen.size(), [&](std::size_t i) {
    const ValidationPoint& p = chosen[i];
    rows[i].id = p.point->id;
    rows[i].source = p.family->source;
    const Seconds before = cache.run(p.scenario).iteration;
    for (std::size_t part = 0; part < kSensitivityParts.size(); ++part)
      rows[i].change[part] = run_with_slower(part, p.scenario, cache).iteration / before - 1;
  });
  return rows;
}

}  // namespace mllmsim
