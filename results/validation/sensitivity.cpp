#include "results/validation/sensitivity.hpp"

#include "results/run/run_scenario.hpp"
#include "scenarios/files/input_files.hpp"
#include "sim/base/parallel.hpp"

namespace mllmsim::validation {
namespace {

constexpr double kSlower = 1.1;

results::RunResult run_with_slower(std::size_t part, scenarios::Scenario scenario,
                                   scenarios::InputFiles& files) {
  RunOptions options{.timeline = false};
  costs::CostFactors& f = options.factors;
  double* const factors[] = {&f.gemm,          &f.attention,           &f.memory_bound,
                             &f.optimizer,     &f.collectives_in_node, &f.collectives_across_nodes,
                             &f.point_to_point};
  if (part < std::size(factors))
    *factors[part] = kSlower;
  else
    scenario.job.software.host_time_per_kernel =
        scenario.job.software.host_time_per_kernel * kSlower;
  return results::run_scenario(scenario, files, options);
}

}  // namespace

std::vector<SensitivityRow> sensitivity(std::span<const scenarios::PublishedFamily> families,
                                        Progress* progress) {
  scenarios::InputFiles files;
  std::vector<ValidationPoint> chosen;
  for (ValidationPoint& p : read_points(families, files))
    if (p.point->sensitivity) chosen.push_back(std::move(p));
  std::vector<SensitivityRow> rows(chosen.size());
  if (progress) progress->begin(chosen.size(), "runs, each with slower parts");
  parallel_for(chosen.size(), [&](std::size_t i) {
    const ValidationPoint& p = chosen[i];
    rows[i].id = p.point->id;
    rows[i].source = p.family->source;
    const Seconds before = results::run_scenario(p.scenario, files, {.timeline = false}).iteration;
    for (std::size_t part = 0; part < kSensitivityParts.size(); ++part)
      rows[i].change[part] = run_with_slower(part, p.scenario, files).iteration / before - 1;
    if (progress) progress->done(true);
  });
  return rows;
}

}  // namespace mllmsim::validation
