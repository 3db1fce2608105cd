#include "strategies/optimus/gaps.hpp"

#include <algorithm>
#include <numeric>

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
  insert(0, gaps);
}

void GapList::insert(std::size_t at, std::span<const Gap> gaps) {
  const std::size_t first = blocks_.size();
  for (; !gaps.empty(); gaps = gaps.subspan(std::min(kBlock, gaps.size()))) {
    const auto part = gaps.first(std::min(kBlock, gaps.size()));
    blocks_.emplace_back(std::vector<Gap>(part.begin(), part.end()));
  }
  const auto place = order_.begin() + static_cast<std::ptrdiff_t>(at);
  const auto added = order_.insert(place, blocks_.size() - first, 0);
  std::iota(added, added + static_cast<std::ptrdiff_t>(blocks_.size() - first),
            static_cast<std::uint32_t>(first));
}

std::size_t GapList::block_at(Time time, std::size_t from) const {
  const auto ends_by = [&](std::uint32_t b) { return blocks_[b].gaps->back().to <= time; };
  std::size_t step = 1;  // most often it is near
  while (from + step < order_.size() && ends_by(order_[from + step])) from += step, step *= 2;
  const auto begin = order_.begin() + static_cast<std::ptrdiff_t>(from);
  const auto end =
      order_.begin() + static_cast<std::ptrdiff_t>(std::min(order_.size(), from + step + 1));
  return static_cast<std::size_t>(std::partition_point(begin, end, ends_by) - order_.begin());
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
  Block& block = blocks_[order_[at]];
  const std::shared_ptr<const std::vector<Gap>> before = block.gaps;
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
  const std::span<const Gap> all(left);
  if (all.empty()) {
    order_.erase(order_.begin() + static_cast<std::ptrdiff_t>(at));
  } else if (all.size() <= 2 * kBlock) {
    block = Block(std::move(left));
  } else {
    block = Block({all.begin(), all.begin() + kBlock});
    insert(at + 1, all.subspan(kBlock));
  }
  return next;
}

std::vector<Gap> GapList::gaps() const {
  std::vector<Gap> all;
  for (const std::uint32_t b : order_)
    all.insert(all.end(), blocks_[b].gaps->begin(), blocks_[b].gaps->end());
  return all;
}

GapCursor::GapCursor(const GapList& gaps, Time from)
    : gaps_(gaps), block_(gaps.block_at(from)), free_(from) {
  gap_ = GapList::gap_at(gaps.block(block_), from);
}

Gap GapCursor::place(Time earliest, Time duration, Time slowed) {
  for (;; ++block_, gap_ = 0) {
    const GapList::Block& block = gaps_.block(block_);
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
