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

}  // namespace
}  // namespace mllmsim::costs
