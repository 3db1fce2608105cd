// The order of kernels that start at the same time.
#include "strategies/optimus/kernel_order.hpp"

#include <gtest/gtest.h>

namespace mllmsim::optimus {
namespace {

// An LLM pass of two kernels, the last of which takes no time (a frozen embedding's backward):
//   0 .. 10   10 .. 10
RankTimeline ends_with_nothing() {
  RankTimeline llm;
  llm.kernels = {{Time{0}, Time{10}, 0, 0}, {Time{10}, Time{10}, 0, 1}};
  llm.passes = 1;
  return llm;
}

EncoderSlot slot_at_10(bool forward) {
  const PlacedPass pass{0, {forward, 0}, {{Time{10}, Time{12}}}};
  return order_of(ends_with_nothing(), {&pass}).slots.front();
}

// It waits for that kernel.
TEST(KernelOrder, ABackwardComesBehindAKernelWithoutTime) {
  EXPECT_EQ(slot_at_10(false).llm_pass, 1U);
}

// That kernel may wait for it.
TEST(KernelOrder, AForwardComesBeforeIt) {
  EXPECT_EQ(slot_at_10(true).llm_pass, 0U);
  EXPECT_EQ(slot_at_10(true).llm_kernel, 1U);
}

}  // namespace
}  // namespace mllmsim::optimus
