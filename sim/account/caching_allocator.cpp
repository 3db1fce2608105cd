#include "sim/account/caching_allocator.hpp"

#include <algorithm>
#include <limits>

#include "sim/base/errors.hpp"

namespace mllmsim {
namespace {

constexpr std::int64_t kMiB = 1 << 20;
constexpr std::int64_t kRound = 512;                           // kMinBlockSize
constexpr std::int64_t kSmallRequest = kMiB;                   // kSmallSize
constexpr std::int64_t kSmallSegment = 2 * kMiB;               // kSmallBuffer
constexpr std::int64_t kLargeSegment = 20 * kMiB;              // kLargeBuffer
constexpr std::int64_t kOwnSegment = 10 * kMiB;                // kMinLargeAlloc
constexpr std::int64_t kOwnSegmentRound = 2 * kMiB;            // kRoundLarge
constexpr std::int64_t kAddressSpace = std::int64_t{1} << 50;  // of an expandable segment

std::int64_t round_up(std::int64_t n, std::int64_t to) { return (n + to - 1) / to * to; }

std::int64_t segment_size(std::int64_t request) {
  if (request <= kSmallRequest) return kSmallSegment;
  if (request < kOwnSegment) return kLargeSegment;
  return round_up(request, kOwnSegmentRound);
}

std::int64_t page(bool small) { return small ? kSmallSegment : kLargeSegment; }

}  // namespace

CachingAllocator::CachingAllocator(const AllocatorSettings& settings, Bytes limit)
    : settings_(settings),
      limit_(limit.value),
      split_below_(settings.max_split_size.value > 0 ? settings.max_split_size.value
                                                     : std::numeric_limits<std::int64_t>::max()) {}

std::optional<CachingAllocator::Block> CachingAllocator::allocate(Bytes request) {
  check(request.value > 0, "an allocation has bytes");
  const std::int64_t size = round_up(request.value, kRound);
  const bool small = size <= kSmallRequest;
  ++searches_[small ? 1 : 0];
  Block block = find(size, small);
  if (block == kNone) {
    if (settings_.memory_fraction > 0 && settings_.garbage_collection_threshold > 0)
      collect_garbage();
    block = new_segment(size, small);
    if (block == kNone && release_large_enough(size, small)) block = new_segment(size, small);
    if (block == kNone) {
      ++retries_;
      release_unused();
      block = new_segment(size, small);
    }
    if (block == kNone) return std::nullopt;
  }
  if (should_split(nodes_[block], size)) split(block, size);
  nodes_[block].used = true;
  allocated_ += nodes_[block].size;
  peak_allocated_ = std::max(peak_allocated_, allocated_);
  return block;
}

void CachingAllocator::free(Block block) {
  nodes_[block].used = false;
  allocated_ -= nodes_[block].size;
  insert(merged(block));
}

// Best fit. Blocks above max_split_size are for requests of that size, and no more than 20 MiB
// larger. A block of an expandable segment counts with the unmapped memory behind it.
CachingAllocator::Block CachingAllocator::find(std::int64_t size, bool small) {
  Pool& pool = pool_of(small);
  if (settings_.expandable_segments) return find_with_room(pool, size);
  const Pool::Place at = pool.lower_bound({size, -1, 0});
  const FreeBlock best = or_latest(at == Pool::end() ? FreeBlock{} : pool[at], size, small);
  if (best.block == kNone) return kNone;
  if (size < split_below_ && best.size >= split_below_) return kNone;
  if (size >= split_below_ && best.size >= size + kLargeSegment) return kNone;
  if (best.block == latest_)
    latest_ = kNone;
  else
    pool.erase(at);
  return best.block;
}

// The latest one, if it is large enough and a better fit than the best in its pool.
FreeBlock CachingAllocator::or_latest(const FreeBlock& best, std::int64_t size, bool small) const {
  if (latest_ == kNone || nodes_[latest_].small != small || nodes_[latest_].size < size)
    return best;
  const FreeBlock latest{nodes_[latest_].size, nodes_[latest_].address, latest_};
  return best.block == kNone || latest < best ? latest : best;
}

// The smallest free block that is large enough for the smallest request is the best fit of all of
// them, if it is large enough for all: others are larger, and it only gets smaller.
bool CachingAllocator::allocate_together(const TensorsTogether& tensors, std::int64_t times,
                                         std::vector<Block>& into) {
  if (settings_.expandable_segments || settings_.max_split_size.value > 0 ||
      settings_.garbage_collection_threshold > 0)
    return false;
  const TensorsTogether::Pool* const wanted[2] = {&tensors.large, &tensors.small};
  Block from[2]{kNone, kNone};
  for (const bool small : {false, true}) {
    const TensorsTogether::Pool& of = *wanted[small ? 1 : 0];
    if (of.total == 0) continue;
    const Pool::Place at = pool_of(small).lower_bound({of.smallest, -1, 0});
    const FreeBlock best =
        or_latest(at == Pool::end() ? FreeBlock{} : pool_of(small)[at], of.smallest, small);
    const std::int64_t rest = best.size - times * of.total;
    if (best.block == kNone || rest < (small ? kRound : kSmallRequest + 1)) return false;
    from[small ? 1 : 0] = best.block;
  }
  for (const bool small : {false, true}) {
    const Block block = from[small ? 1 : 0];
    if (block == kNone) continue;
    erase(block);
    split(block, times * wanted[small ? 1 : 0]->total);
    nodes_[block].used = true;
    allocated_ += nodes_[block].size;
    into.push_back(block);
  }
  peak_allocated_ = std::max(peak_allocated_, allocated_);
  return true;
}

void TensorsTogether::add(Bytes request) {
  if (request.value <= 0) return;
  const std::int64_t size = round_up(request.value, kRound);
  Pool& pool = size <= kSmallRequest ? small : large;
  pool.smallest = pool.total == 0 ? size : std::min(pool.smallest, size);
  pool.total += size;
}

CachingAllocator::Block CachingAllocator::find_with_room(Pool& pool, std::int64_t size) {
  store_latest();
  Pool::Place at = pool.lower_bound({size, -1, 0});
  if (at == Pool::end()) return kNone;
  const auto with_room = [&](const FreeBlock& f) {
    const Block next = nodes_[f.block].next;
    return f.size + (next != kNone && !nodes_[next].mapped ? nodes_[next].size : 0);
  };
  for (Pool::Place next = pool.next(at);
       next != Pool::end() && with_room(pool[next]) < with_room(pool[at]); next = pool.next(at))
    at = next;
  const Block block = pool[at].block;
  pool.erase(at);
  return block;
}

bool CachingAllocator::should_split(const Node& block, std::int64_t size) const {
  const std::int64_t rest = block.size - size;
  if (block.small || settings_.expandable_segments) return rest >= kRound;
  return size < split_below_ && rest > kSmallRequest;
}

void CachingAllocator::split(Block block, std::int64_t size) {
  Node rest = nodes_[block];
  rest.address += size;
  rest.size -= size;
  rest.previous = block;
  const Block other = make(rest);
  if (rest.next != kNone) nodes_[rest.next].previous = other;
  nodes_[block].size = size;
  nodes_[block].next = other;
  insert(other);
}

CachingAllocator::Block CachingAllocator::new_segment(std::int64_t size, bool small) {
  if (settings_.expandable_segments) return expand(size, small);
  const std::int64_t bytes = segment_size(size);
  if (reserved_ + bytes > limit_) return kNone;
  reserve(bytes);
  ++segments_;
  Node node;
  node.address = next_address_;
  node.size = bytes;
  node.small = small;
  next_address_ += bytes;
  return make(node);
}

// Maps pages at the first place where free and unmapped memory side by side are enough; what was
// mapped before one of its holes would not fit stays.
CachingAllocator::Block CachingAllocator::expand(std::int64_t size, bool small) {
  Block& tail = unmapped_tail_[small ? 1 : 0];
  if (tail == kNone) {
    Node node;
    node.address = next_address_;
    node.size = kAddressSpace;
    node.small = small;
    node.mapped = false;
    next_address_ += kAddressSpace;
    tail = make(node);
    ++segments_;
  }
  Block block = find_expandable(size, small);
  if (!nodes_[block].mapped) block = map(block, size);
  while (block != kNone && nodes_[block].size < size)
    block = map(nodes_[block].next, size - nodes_[block].size);
  if (block != kNone) erase(block);
  return block;
}

// So much of the front of a hole, in whole pages, and puts it into its pool with its neighbours.
CachingAllocator::Block CachingAllocator::map(Block hole, std::int64_t size) {
  const std::int64_t bytes = std::min(round_up(size, page(nodes_[hole].small)), nodes_[hole].size);
  if (reserved_ + bytes > limit_) return kNone;
  reserve(bytes);
  Block block = hole;
  if (bytes < nodes_[hole].size) {
    Node mapped = nodes_[hole];
    mapped.size = bytes;
    mapped.mapped = true;
    mapped.next = hole;
    block = make(mapped);
    nodes_[hole].address += bytes;
    nodes_[hole].size -= bytes;
    nodes_[hole].previous = block;
    if (mapped.previous != kNone) nodes_[mapped.previous].next = block;
  } else {
    nodes_[hole].mapped = true;
  }
  block = merged(block);
  insert(block);
  return block;
}

CachingAllocator::Block CachingAllocator::find_expandable(std::int64_t size, bool small) const {
  const Block tail = unmapped_tail_[small ? 1 : 0];
  Block first = tail;
  while (nodes_[first].previous != kNone) first = nodes_[first].previous;
  const auto room_from = [&](Block b) {
    std::int64_t room = 0;
    for (; room < size && b != kNone && !nodes_[b].used; b = nodes_[b].next) room += nodes_[b].size;
    return room;
  };
  for (Block b = first; b != kNone; b = nodes_[b].next) {
    if (nodes_[b].mapped) continue;
    const Block before = nodes_[b].previous;
    const Block start = before != kNone && !nodes_[before].used ? before : b;
    if (room_from(start) >= size) return start;
  }
  return tail;
}

// With its free neighbours, which leave their pool.
CachingAllocator::Block CachingAllocator::merged(Block block) {
  const Block before = nodes_[block].previous, after = nodes_[block].next;
  if (before != kNone && !nodes_[before].used && nodes_[before].mapped) {
    erase(before);
    absorb(before, block);
    block = before;
  }
  if (after != kNone && !nodes_[after].used && nodes_[after].mapped) {
    erase(after);
    absorb(block, after);
  }
  return block;
}

void CachingAllocator::absorb(Block into, Block other) {
  Node& a = nodes_[into];
  const Node& b = nodes_[other];
  a.size += b.size;
  a.next = b.next;
  if (b.next != kNone) nodes_[b.next].previous = into;
  unused_.push_back(other);
}

void CachingAllocator::insert(Block block) {
  store_latest();
  nodes_[block].free_since = searches_[nodes_[block].small ? 1 : 0];
  latest_ = block;
}

void CachingAllocator::store_latest() {
  if (latest_ == kNone) return;
  const Node& n = nodes_[latest_];
  pool_of(n.small).insert({n.size, n.address, latest_});
  latest_ = kNone;
}

void CachingAllocator::erase(Block block) {
  if (block == latest_) {
    latest_ = kNone;
    return;
  }
  const Node& n = nodes_[block];
  Pool& pool = pool_of(n.small);
  const Pool::Place at = pool.lower_bound({n.size, n.address, block});
  check(at != Pool::end() && pool[at].block == block, "a free block is in its pool");
  pool.erase(at);
}

void CachingAllocator::release(Block block) {
  erase(block);
  reserve(-nodes_[block].size);
  --segments_;
  unused_.push_back(block);
}

// Whole pages of a free block of an expandable segment.
void CachingAllocator::unmap(Block block) {
  const std::int64_t step = page(nodes_[block].small);
  const std::int64_t begin = round_up(nodes_[block].address, step);
  const std::int64_t end = (nodes_[block].address + nodes_[block].size) / step * step;
  if (end <= begin) return;
  erase(block);
  const std::int64_t front = begin - nodes_[block].address;
  if (front > 0) {
    split(block, front);
    insert(block);
    block = nodes_[block].next;
    erase(block);
  }
  if (nodes_[block].size > end - begin) split(block, end - begin);
  reserve(-nodes_[block].size);
  nodes_[block].mapped = false;
  const bool small = nodes_[block].small;
  const Block before = nodes_[block].previous, after = nodes_[block].next;
  const Block tail = unmapped_tail_[small ? 1 : 0];
  if (after != kNone && !nodes_[after].mapped) {
    absorb(block, after);
    if (after == tail) unmapped_tail_[small ? 1 : 0] = block;
  }
  if (before != kNone && !nodes_[before].mapped) {
    const bool was_tail = unmapped_tail_[small ? 1 : 0] == block;
    absorb(before, block);
    if (was_tail) unmapped_tail_[small ? 1 : 0] = before;
  }
}

// Oversized blocks that nobody uses: the smallest that is enough, or the largest together.
bool CachingAllocator::release_large_enough(std::int64_t size, bool small) {
  if (settings_.max_split_size.value == 0 || settings_.expandable_segments) return false;
  store_latest();
  Pool& pool = pool_of(small);
  const std::int64_t wanted = std::max(size, split_below_);
  const Pool::Place at = pool.lower_bound({wanted, -1, 0});
  if (at != Pool::end()) {
    release(pool[at].block);
    return true;
  }
  std::int64_t released = 0;
  while (released < wanted && !pool.empty() && pool.back().size >= split_below_) {
    released += pool.back().size;
    release(pool.back().block);
  }
  return released >= wanted;
}

void CachingAllocator::release_unused() {
  store_latest();
  for (Pool& pool : pools_) {
    for (const FreeBlock& f : pool.all())  // releasing changes the pool
      if (settings_.expandable_segments)
        unmap(f.block);
      else if (nodes_[f.block].previous == kNone && nodes_[f.block].next == kNone)
        release(f.block);
  }
}

void CachingAllocator::collect_garbage() {
  const auto threshold = static_cast<std::int64_t>(settings_.garbage_collection_threshold *
                                                   static_cast<double>(limit_));
  if (reserved_ <= threshold) return;
  store_latest();
  const std::int64_t target = reserved_ - threshold;
  const auto whole = [&](const FreeBlock& f) {
    return nodes_[f.block].previous == kNone && nodes_[f.block].next == kNone;
  };
  const auto age_of = [&](const FreeBlock& f) { return searches_[0] - nodes_[f.block].free_since; };
  std::int64_t reclaimed = 0;
  for (bool freed = true; freed && reclaimed < target;) {
    freed = false;
    std::int64_t age = 0, count = 0;
    const std::vector<FreeBlock> free = pools_[0].all();
    for (const FreeBlock& f : free)
      if (whole(f)) age += age_of(f), ++count;
    if (count == 0) return;
    for (const FreeBlock& f : free)
      if (whole(f) && age_of(f) * count >= age) {
        reclaimed += f.size;
        release(f.block);
        freed = true;
      }
  }
}

CachingAllocator::Block CachingAllocator::make(const Node& node) {
  if (unused_.empty()) {
    nodes_.push_back(node);
    return static_cast<Block>(nodes_.size() - 1);
  }
  const Block block = unused_.back();
  unused_.pop_back();
  nodes_[block] = node;
  return block;
}

void CachingAllocator::reserve(std::int64_t bytes) {
  reserved_ += bytes;
  peak_reserved_ = std::max(peak_reserved_, reserved_);
}

}  // namespace mllmsim
