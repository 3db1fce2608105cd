#include "strategies/lower/buckets.hpp"

#include "sim/world/software.hpp"

#include <gtest/gtest.h>

namespace mllmsim {
using namespace lower;
namespace {

constexpr std::int64_t kMillion = 1'000'000;

// 30 + 30 reaches 40 million, 10 + 40 does; 5 are left.
TEST(Buckets, CloseAsSoonAsTheyHold40Million) {
  const std::vector<std::int64_t> layers = {30 * kMillion, 30 * kMillion, 10 * kMillion,
                                            40 * kMillion, 5 * kMillion};
  EXPECT_EQ(
      buckets(layers, Software{}.bucket_parameters(8)),
      (std::vector<Bucket>{{0, 2, 60 * kMillion}, {2, 4, 50 * kMillion}, {4, 5, 5 * kMillion}}));
}

// 60 replicas: a bucket is full at 60 million, and exactly 60 are enough.
TEST(Buckets, GrowWithTheReplicas) {
  const std::vector<std::int64_t> layers = {30 * kMillion, 30 * kMillion, 10 * kMillion,
                                            40 * kMillion, 5 * kMillion};
  EXPECT_EQ(buckets(layers, Software{}.bucket_parameters(60)),
            (std::vector<Bucket>{{0, 2, 60 * kMillion}, {2, 5, 55 * kMillion}}));
}

TEST(Buckets, FrozenLayersRideAlong) {
  EXPECT_EQ(buckets({0, 0, kMillion}, 40 * kMillion), (std::vector<Bucket>{{0, 3, kMillion}}));
}

}  // namespace
}  // namespace mllmsim
