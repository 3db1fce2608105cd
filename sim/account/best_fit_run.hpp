// Best fits of many requests in a row, between which nothing is freed, from one pool.
//
// Requests are of few sizes s1 < s2 < ...; class j holds the free blocks of s_j or more that are
// too small for s_j+1. A request takes the first block of its class, or of the first class above
// that has one. Since nothing is freed, the blocks of a class are taken in order, and only what is
// left of one that was cut joins a class, or none if it is smaller than s1. So rows of the pool are
// taken from the front, and what is left joins them once, at the end.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/account/free_blocks.hpp"

namespace mllmsim {

class BestFitRun {
 public:
  struct Taken {
    FreeBlock block;
    bool rest = false;  // of a block that was taken before
  };

  // Of a request: its class, after begin().
  void add_size(std::int64_t size);
  void begin(FreeBlocks& pool);
  std::size_t class_of(std::int64_t size) const;
  bool take(std::size_t of_class, Taken& taken);
  void give_back(std::int64_t size, std::int64_t address, std::uint32_t block);
  void end();

 private:
  struct Class {
    std::int64_t size = 0;
    std::size_t row = 0, end = 0;  // in the pool
    std::vector<FreeBlock> rests;  // largest first
  };

  FreeBlocks* pool_ = nullptr;
  std::size_t count_ = 0;  // of classes that are in use
  std::vector<Class> classes_;
  std::vector<FreeBlock> left_;  // too small for any request
};

inline bool BestFitRun::take(std::size_t of_class, Taken& taken) {
  for (std::size_t c = of_class; c < count_; ++c) {
    Class& own = classes_[c];
    while (own.row < own.end && pool_->empty(own.row)) ++own.row;
    const bool whole = own.row < own.end;
    if (!own.rests.empty() && (!whole || own.rests.back() < pool_->front(own.row))) {
      taken = {own.rests.back(), true};
      own.rests.pop_back();
      return true;
    }
    if (!whole) continue;
    taken = {pool_->front(own.row), false};
    pool_->pop_front(own.row);
    return true;
  }
  return false;
}

inline void BestFitRun::give_back(std::int64_t size, std::int64_t address, std::uint32_t block) {
  std::size_t c = count_;
  while (c > 0 && classes_[c - 1].size > size) --c;
  if (c == 0) {
    left_.emplace_back(size, address, block);
    return;
  }
  const FreeBlock rest(size, address, block);
  std::vector<FreeBlock>& rests = classes_[c - 1].rests;
  auto at = rests.end();
  while (at != rests.begin() && *(at - 1) < rest) --at;
  rests.emplace(at, size, address, block);
}

}  // namespace mllmsim
