#include "sim/account/best_fit_run.hpp"

#include <algorithm>

namespace mllmsim {

void BestFitRun::add_size(std::int64_t size) {
  std::size_t at = count_;
  while (at > 0 && classes_[at - 1].size >= size) --at;
  if (at < count_ && classes_[at].size == size) return;
  if (count_ == classes_.size()) classes_.emplace_back();
  std::rotate(classes_.begin() + static_cast<std::ptrdiff_t>(at),
              classes_.begin() + static_cast<std::ptrdiff_t>(count_),
              classes_.begin() + static_cast<std::ptrdiff_t>(count_) + 1);
  classes_[at].size = size;
  ++count_;
}

void BestFitRun::begin(const FreeBlocks& pool) {
  pool_ = &pool;
  for (std::size_t c = 0; c < count_; ++c) {
    Class& own = classes_[c];
    own.first = own.next = pool.lower_bound({own.size, -1, 0});
    if (c > 0) classes_[c - 1].end = own.first;
  }
  if (count_ > 0) classes_[count_ - 1].end = pool.size();
}

std::size_t BestFitRun::class_of(std::int64_t size) const {
  std::size_t c = 0;
  while (classes_[c].size < size) ++c;
  return c;
}

void BestFitRun::end(FreeBlocks& pool) {
  for (std::size_t c = 0; c < count_; ++c) {
    Class& own = classes_[c];
    for (std::size_t at = own.first; at < own.next; ++at) pool.leaves(pool[at].block);
    left_.insert(left_.end(), own.rests.begin(), own.rests.end());
    own.rests.clear();
  }
  count_ = 0;
  std::sort(left_.begin(), left_.end());
  pool.change(left_);
  left_.clear();
}

}  // namespace mllmsim
