// The library's front: read a scenario or build a Job, simulate it, look at the Outcome.
//
//   const auto scenario = mllmsim::scenarios::read_scenario("internvl-6b-20b-a100x32");
//   const auto kernels =
//       mllmsim::costs::read_kernel_costs(scenario.calibration, scenario.job.cluster);
//   const mllmsim::Outcome outcome = mllmsim::simulate(scenario.job, *kernels);
//
// Strategies of your own: register_strategy (strategies/registry/registry.hpp). Errors: UserError,
// EnvironmentError (sim/base/errors.hpp).
#pragma once

#include "cost_models/calibration/calibrated_costs.hpp"
#include "scenarios/read/scenario.hpp"
#include "sim/base/data_directory.hpp"
#include "sim/base/errors.hpp"
#include "strategies/registry/registry.hpp"
#include "strategies/run/simulate.hpp"

#ifdef MLLMSIM_PACKAGE_DATA  // set by find_package(mllmsim): where it installed its data
namespace mllmsim {
inline const bool kPackageDataIsKnown = use_data_directory(MLLMSIM_PACKAGE_DATA);
}
#endif
