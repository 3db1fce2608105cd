#include "sim/base/enum_names.hpp"

#include <gtest/gtest.h>

#include <cstdint>

#include "sim/account/bubbles.hpp"
#include "sim/kernel/task_kinds.hpp"
#include "sim/world/model.hpp"
#include "sim/world/parallelism.hpp"

namespace mllmsim {
namespace {

TEST(EnumNames, BothWays) {
  EXPECT_EQ(name_of(Recompute::selective), "selective");
  EXPECT_EQ(named<Recompute>("full"), Recompute::full);
  EXPECT_EQ(named<Recompute>("Full"), std::nullopt);
  EXPECT_EQ(choices<Recompute>(), "\"none\", \"selective\" or \"full\"");
}

// Every name leads back to its enumerator, so none stands twice.
template <class Enum>
void expect_a_table(Enum last) {
  EXPECT_EQ(Names<Enum>::list.size(), static_cast<std::size_t>(last) + 1);
  for (std::size_t i = 0; i < Names<Enum>::list.size(); ++i) {
    const auto value = static_cast<Enum>(i);
    EXPECT_EQ(named<Enum>(name_of(value)), value);
  }
}

TEST(EnumNames, TablesHaveANamePerEnumerator) {
  expect_a_table(StreamKind::encoder_recv_next);
  expect_a_table(TaskKind::host);
  expect_a_table(BubbleKind::encoder_wait);
  expect_a_table(Norm::rms_norm);
  expect_a_table(UnevenHeads::replicate);
  expect_a_table(Recompute::full);
}

}  // namespace
}  // namespace mllmsim
