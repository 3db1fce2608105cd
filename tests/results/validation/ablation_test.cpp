#include "results/validation/ablation.hpp"

#include <gtest/gtest.h>

namespace mllmsim::validation {
namespace {

// What is neutral already is not simulated again.
TEST(Ablation, EveryKnobIsNeutralOnceItWasMadeSo) {
  Job job;
  costs::Calibration calibration;
  job.software.host_time_per_kernel = {55e-6};
  calibration.gemm.sustained.value = 1.2;
  for (const Knob& knob : fitted_knobs()) {
    EXPECT_TRUE(knob.neutralise(job, calibration)) << knob.name;
    EXPECT_FALSE(knob.neutralise(job, calibration)) << knob.name;
    EXPECT_FALSE(knob.chosen_with.empty()) << knob.name;
  }
  EXPECT_DOUBLE_EQ(job.software.host_time_per_kernel.value, 8e-6);
}

}  // namespace
}  // namespace mllmsim::validation
