// Random numbers that are the same on every platform, which those of <random>'s distributions are
// not.
//
// The generator is SplitMix64 (Steele, Lea, Flood 2014): a counter through a mixing function, one
// state word, so numbers do not wait for each other and a shuffle runs at the speed of memory. Not
// for cryptography.
#pragma once

#include <cmath>
#include <cstdint>
#include <numbers>
#include <span>
#include <utility>

#include "sim/base/hash.hpp"

namespace mllmsim::data {

class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}

  std::uint64_t next() { return split_mix(state_ += kSplitMixStep); }

  // In [0, bound). By multiplication: the bias is below bound / 2^32.
  std::uint32_t below(std::uint32_t bound) {
    return static_cast<std::uint32_t>(((next() >> 32) * bound) >> 32);
  }

  // Inside (0, 1).
  double uniform() { return (static_cast<double>(next() >> 11) + 0.5) * 0x1p-53; }

  // Standard normal, by Box and Muller. Libraries differ in the last bit of log and cos; whoever
  // rounds the result to whole tokens sees that once in 10^10 samples.
  double normal() {
    const double radius = std::sqrt(-2 * std::log(uniform()));
    return radius * std::cos(2 * std::numbers::pi * uniform());
  }

 private:
  std::uint64_t state_;
};

// Fisher and Yates.
template <class T>
void shuffle(std::span<T> items, Random& random) {
  for (std::size_t left = items.size(); left > 1; --left)
    std::swap(items[left - 1], items[random.below(static_cast<std::uint32_t>(left))]);
}

}  // namespace mllmsim::data
