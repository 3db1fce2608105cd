#include "strategies/optimus/gaps.hpp"

#include <algorithm>

namespace mllmsim::optimus {
namespace {

constexpr std::size_t kBlock = 64;  // gaps of a new block; twice as many are cut in two

}  // namespace

GapList::Block::Block(std::vector<Gap> of)
    : gaps(std::make_shared<const std::vector<Gap>>(std::move(of))),
      longest{-1},
      longest_tp_bubble{-1} {
  for (const Gap& g : *gaps) {
    Time& most = g.tp_bubble ? longest_tp_bubble : longest;
    most = std::max(most, g.to - g.from);
  }
}

GapList::GapList(const std::vector<Gap>& gaps) {
  blocks_.reserve(gaps.size() / kBlock + 1);
  for (auto at = gaps.begin(); at != gaps.end();) {
    const auto end = at + std::min<std::ptrdiff_t>(kBlock, gaps.end() - at);
    blocks_.emplace_back(std::vector<Gap>(at, end));
    at = end;
  }
}

std::size_t GapList::block_at(Time time, std::size_t from) const {
  const auto ends_by = [&](const Block& b) { return b.gaps->back().to <= time; };
  std::size_t step = 1;  // most often it is near
  while (from + step < blocks_.size() && ends_by(blocks_[from + step])) from += step, step *= 2;
  const auto begin = blocks_.begin() + static_cast<std::ptrdiff_t>(from);
  const auto end =
      blocks_.begin() + static_cast<std::ptrdiff_t>(std::min(blocks_.size(), from + step + 1));
  return static_cast<std::size_t>(std::partition_point(begin, end, ends_by) - blocks_.begin());
}

std::size_t GapList::gap_at(const Block& block, Time time) {
  return static_cast<std::size_t>(std::partition_point(block.gaps->begin(), block.gaps->end(),
                                                       [&](const Gap& g) { return g.to <= time; }) -
                                  block.gaps->begin());
}

void GapList::take(std::span<const Gap> taken) {
  for (std::size_t block = 0; !taken.empty();) {
    block = block_at(taken.front().from, block);
    taken = taken.subspan(take_from_block(block, taken));
  }
}

// Returns how many of `taken` lie in the block.
std::size_t GapList::take_from_block(std::size_t at, std::span<const Gap> taken) {
  const std::shared_ptr<const std::vector<Gap>> before = blocks_[at].gaps;
  std::vector<Gap> left;
  left.reserve(before->size() + std::min(taken.size(), before->size()));
  std::size_t next = 0;
  for (Gap g : *before) {
    for (; next < taken.size() && taken[next].from < g.to; ++next) {
      if (taken[next].from > g.from) left.push_back({g.from, taken[next].from, g.tp_bubble});
      g.from = taken[next].to;
    }
    if (g.to > g.from) left.push_back(g);
  }
  const auto place = blocks_.begin() + static_cast<std::ptrdiff_t>(at);
  if (left.empty()) {
    blocks_.erase(place);
  } else if (left.size() <= 2 * kBlock) {
    *place = Block(std::move(left));
  } else {
    std::vector<Block> cut = std::move(GapList(left).blocks_);
    *place = std::move(cut.front());
    blocks_.insert(place + 1, std::make_move_iterator(cut.begin() + 1),
                   std::make_move_iterator(cut.end()));
  }
  return next;
}

std::vector<Gap> GapList::gaps() const {
  std::vector<Gap> all;
  for (const Block& b : blocks_) all.insert(all.end(), b.gaps->begin(), b.gaps->end());
  return all;
}

GapCursor::GapCursor(const GapList& gaps, Time from)
    : gaps_(gaps), block_(gaps.block_at(from)), free_(from) {
  gap_ = GapList::gap_at(gaps.blocks_[block_], from);
}

Gap GapCursor::place(Time earliest, Time duration, Time slowed) {
  for (;; ++block_, gap_ = 0) {
    const GapList::Block& block = gaps_.blocks_[block_];
    if (!block.may_fit(duration, slowed) || block.gaps->back().to < earliest) continue;
    const std::vector<Gap>& gaps = *block.gaps;
    for (; gap_ < gaps.size(); ++gap_) {
      const Gap& g = gaps[gap_];
      const Time start = std::max({g.from, free_, earliest});
      const Time end = start + (g.tp_bubble ? slowed : duration);
      if (end > g.to) continue;
      free_ = end;
      return {start, end, g.tp_bubble};
    }
  }
}

}  // namespace mllmsim::optimus
