// Exchanges of tokens between measurements: 1 token of 1,000 bytes for 2 ranks.
#include "cost_models/kernels/exchange.hpp"

#include <gtest/gtest.h>

#include <array>

namespace mllmsim::costs {
namespace {

ExchangeModel measured(int sms, int ranks, double bytes_per_second) {
  ExchangeModel m;
  m.sms = sms;
  m.ranks = ranks;
  m.dispatch.bandwidth = m.combine.bandwidth = BytesPerSecond{bytes_per_second};
  return m;
}

double seconds(int ranks, int sms) {
  static const std::array models{measured(16, 8, 1e3), measured(16, 32, 5e2), measured(32, 8, 2e3)};
  TokenExchange x;
  x.tokens = 1;
  x.bytes = 1000;
  x.ranks_per_token = 2;
  x.group = {ranks, 1, 1};
  x.sms = sms;
  return exchange_time(models, x).time.value;
}

// 2 s on 8 ranks and 4 s on 32: 16 is half way between them.
TEST(Exchange, LiesBetweenMeasuredNumbersOfRanks) {
  EXPECT_DOUBLE_EQ(seconds(8, 16), 2);
  EXPECT_DOUBLE_EQ(seconds(16, 16), 3);
  EXPECT_DOUBLE_EQ(seconds(32, 16), 4);
}

TEST(Exchange, IsAsTheNearestBeyondThem) {
  EXPECT_DOUBLE_EQ(seconds(4, 16), 2);
  EXPECT_DOUBLE_EQ(seconds(64, 16), 4);
}

TEST(Exchange, HasTheMostSmsThatWereMeasuredAndGiven) {
  EXPECT_DOUBLE_EQ(seconds(8, 20), 2);
  EXPECT_DOUBLE_EQ(seconds(8, 64), 1);
  EXPECT_DOUBLE_EQ(seconds(8, 4), 2);  // fewer than any
}

NetworkExchange across(int nodes, double base, double share) {
  NetworkExchange n;
  n.nodes = nodes;
  n.dispatch = n.combine = {Seconds{base}, share};
  return n;
}

// 4 tokens of 1,000 bytes, each for 3 other nodes, at 6,000 bytes a second: 2 s, at half of it 4 s.
// On 4 nodes the share and the base are half way between those of 2 and 8.
TEST(Exchange, AcrossNodesReachesTheMeasuredShareOfTheNetwork) {
  const std::array models{across(2, 1, 0.5), across(8, 3, 1)};
  TokenExchange x;
  x.tokens = 4;
  x.bytes = 1000;
  x.nodes_per_token = 3;
  const auto seconds = [&](int nodes) {
    x.group = {8 * nodes, nodes, 1};
    return std::pair{network_time(models, x, BytesPerSecond{6e3}).time.value,
                     network_base(models, x).value};
  };
  EXPECT_EQ(seconds(2), std::pair(4.0, 1.0));
  EXPECT_EQ(seconds(16), std::pair(2.0, 3.0));
  EXPECT_DOUBLE_EQ(seconds(4).first, 2 / 0.75);
  EXPECT_DOUBLE_EQ(seconds(4).second, 2);
}

}  // namespace
}  // namespace mllmsim::costs
