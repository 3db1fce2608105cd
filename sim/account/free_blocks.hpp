// Free blocks by size and address, smallest first: what a best fit looks through.
//
// One sorted list. Adding or taking a block moves those behind it; many at once are a pass over
// all.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

namespace mllmsim {

struct FreeBlock {
  std::int64_t size = 0, address = 0;
  std::uint32_t block = UINT32_MAX;
  // Addresses differ. Written so that it takes no branch.
  bool operator<(const FreeBlock& other) const {
    return (size < other.size) | ((size == other.size) & (address < other.address));
  }
};

class FreeBlocks {
 public:
  std::size_t size() const { return blocks_.size(); }
  bool empty() const { return blocks_.empty(); }
  const FreeBlock& operator[](std::size_t place) const { return blocks_[place]; }
  const FreeBlock& back() const { return blocks_.back(); }
  const std::vector<FreeBlock>& all() const { return blocks_; }

  // The first that is not before `f`; size() if there is none.
  std::size_t lower_bound(const FreeBlock& f) const {
    return static_cast<std::size_t>(std::lower_bound(blocks_.begin(), blocks_.end(), f) -
                                    blocks_.begin());
  }
  void insert(const FreeBlock& f) {
    knows(f.block);
    blocks_.insert(std::lower_bound(blocks_.begin(), blocks_.end(), f), f);
  }
  void erase(std::size_t place) {
    blocks_.erase(blocks_.begin() + static_cast<std::ptrdiff_t>(place));
  }
  // One that the next change takes away.
  void leaves(std::uint32_t block) {
    leaving_[block] = true;
    any_leave_ = true;
  }
  // Sorted ones come, those named before go.
  void change(const std::vector<FreeBlock>& added) {
    if (added.empty() && !any_leave_) return;
    for (const FreeBlock& f : added) knows(f.block);
    if (changed_.size() < blocks_.size() + added.size())
      changed_.resize(2 * (blocks_.size() + added.size()));
    FreeBlock* out = changed_.data();
    auto next = added.begin();
    for (std::size_t at = 0; at < blocks_.size(); ++at) {
      while (next != added.end() && *next < blocks_[at]) *out++ = *next++;
      *out = blocks_[at];
      char& leaving = leaving_[blocks_[at].block];
      out += 1 - leaving;
      leaving = false;
    }
    out = std::copy(next, added.end(), out);
    blocks_.assign(changed_.data(), out);
    any_leave_ = false;
  }

 private:
  void knows(std::uint32_t block) {
    if (leaving_.size() <= block) leaving_.resize(2 * std::size_t{block} + 1);
  }

  std::vector<FreeBlock> blocks_, changed_;
  std::vector<char> leaving_;  // by block
  bool any_leave_ = false;
};

}  // namespace mllmsim
