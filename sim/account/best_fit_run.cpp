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

void BestFitRun::begin(FreeBlocks& pool) {
  pool_ = &pool;
  for (std::size_t c = 0; c < count_; ++c) {
    classes_[c].row = pool.row_of(classes_[c].size);
    if (c > 0) classes_[c - 1].end = classes_[c].row;
  }
  if (count_ > 0) classes_[count_ - 1].end = pool.rows();
}

std::size_t BestFitRun::class_of(std::int64_t size) const {
  std::size_t c = 0;
  while (classes_[c].size < size) ++c;
  return c;
}

void BestFitRun::end() {
  for (const FreeBlock& f : left_) pool_->comes(f.size, f.address, f.block);
  for (std::size_t c = 0; c < count_; ++c) {
    std::vector<FreeBlock>& rests = classes_[c].rests;
    for (auto f = rests.rbegin(); f != rests.rend(); ++f)
      pool_->comes(f->size, f->address, f->block);
    rests.clear();
  }
  if (count_ > 0) pool_->settle();
  count_ = 0;
  left_.clear();
}

}  // namespace mllmsim
