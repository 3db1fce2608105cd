// Free blocks by size and address, smallest first: what a best fit looks through.
//
// Blocks are kept in classes of size, sixteen to a power of two, each a short sorted list, so that
// adding and taking one moves few others; a bit for each class that has any finds the next.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <vector>

namespace mllmsim {

struct FreeBlock {
  std::int64_t size = 0, address = 0;
  std::uint32_t block = UINT32_MAX;
  auto operator<=>(const FreeBlock&) const = default;
};

class FreeBlocks {
 public:
  struct Place {
    std::size_t list = kLists, at = 0;
    bool operator==(const Place&) const = default;
  };
  static constexpr Place end() { return {}; }

  void insert(const FreeBlock& f) {
    const std::size_t c = class_of(f.size);
    std::vector<FreeBlock>& list = lists_[c];
    list.insert(std::lower_bound(list.begin(), list.end(), f), f);
    has_[c / 64] |= std::uint64_t{1} << c % 64;
    ++size_;
  }
  void erase(Place p) {
    std::vector<FreeBlock>& list = lists_[p.list];
    list.erase(list.begin() + static_cast<std::ptrdiff_t>(p.at));
    if (list.empty()) has_[p.list / 64] &= ~(std::uint64_t{1} << p.list % 64);
    --size_;
  }
  // The first that is not before `f`; end() if there is none.
  Place lower_bound(const FreeBlock& f) const {
    const std::size_t c = class_of(f.size);
    const std::vector<FreeBlock>& list = lists_[c];
    const auto at = std::lower_bound(list.begin(), list.end(), f);
    if (at != list.end()) return {c, static_cast<std::size_t>(at - list.begin())};
    return first_from(c + 1);
  }
  Place next(Place p) const {
    return p.at + 1 < lists_[p.list].size() ? Place{p.list, p.at + 1} : first_from(p.list + 1);
  }
  const FreeBlock& operator[](Place p) const { return lists_[p.list][p.at]; }

  bool empty() const { return size_ == 0; }
  const FreeBlock& back() const {
    for (std::size_t word = kWords; word-- > 0;)
      if (has_[word] != 0)
        return lists_[word * 64 + 63 - static_cast<std::size_t>(std::countl_zero(has_[word]))]
            .back();
    return lists_[0].back();  // not reached: there is one
  }
  // A copy, in order: taking blocks while looking through them is allowed.
  std::vector<FreeBlock> all() const {
    std::vector<FreeBlock> out;
    out.reserve(size_);
    for (const std::vector<FreeBlock>& list : lists_)
      out.insert(out.end(), list.begin(), list.end());
    return out;
  }

 private:
  static constexpr std::size_t kWords = 16, kLists = kWords * 64;

  // Of positive sizes: the power of two below, and the four bits that follow its own.
  static std::size_t class_of(std::int64_t size) {
    const auto n = static_cast<std::uint64_t>(size < 16 ? 16 : size);
    const auto power = static_cast<std::size_t>(std::bit_width(n)) - 1;
    return power * 16 + (n >> (power - 4) & 15);
  }
  Place first_from(std::size_t c) const {
    for (std::size_t word = c / 64; word < kWords; ++word) {
      std::uint64_t bits = has_[word];
      if (word == c / 64) bits &= ~std::uint64_t{0} << c % 64;
      if (bits != 0) return {word * 64 + static_cast<std::size_t>(std::countr_zero(bits)), 0};
    }
    return end();
  }

  std::array<std::vector<FreeBlock>, kLists> lists_;
  std::array<std::uint64_t, kWords> has_{};
  std::size_t size_ = 0;
};

}  // namespace mllmsim
