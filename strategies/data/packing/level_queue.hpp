// A priority queue of small integers for many entries with few distinct priorities: one stack per
// level, and two levels of bit sets to find the highest one. Every operation takes constant time.
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <vector>

namespace mllmsim::data {

class LevelQueue {
 public:
  static constexpr std::uint32_t kLevels = 64 * 64;

  explicit LevelQueue(std::size_t entries) : next_(entries) { clear(); }

  void clear() {
    heads_.fill(kNone);
    words_.fill(0);
    summary_ = 0;
  }
  bool empty() const { return summary_ == 0; }

  // Entries of one level come out last in, first out.
  void push(std::uint32_t entry, std::uint32_t level) {
    next_[entry] = heads_[level];
    heads_[level] = entry;
    words_[level / 64] |= bit(level % 64);
    summary_ |= bit(level / 64);
  }

  std::uint32_t pop_highest() {
    const std::uint32_t word = highest(summary_);
    const std::uint32_t level = word * 64 + highest(words_[word]);
    const std::uint32_t entry = heads_[level];
    heads_[level] = next_[entry];
    if (heads_[level] == kNone) words_[word] &= ~bit(level % 64);
    if (words_[word] == 0) summary_ &= ~bit(word);
    return entry;
  }

 private:
  static constexpr std::uint32_t kNone = 0xffffffff;
  static std::uint64_t bit(std::uint32_t i) { return std::uint64_t{1} << i; }
  static std::uint32_t highest(std::uint64_t word) {
    return 63 - static_cast<std::uint32_t>(std::countl_zero(word));
  }

  std::array<std::uint32_t, kLevels> heads_;
  std::array<std::uint64_t, 64> words_;
  std::uint64_t summary_ = 0;
  std::vector<std::uint32_t> next_;  // below an entry on its level
};

}  // namespace mllmsim::data
