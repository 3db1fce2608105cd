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
constexpr std::int64_t kFewTensors = 6;                        // not worth a pass over a pool
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
    if (block == kNone) {
      refused_ = request;
      return std::nullopt;
    }
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
  const std::size_t row = pool.row_of(size);
  if (row == pool.rows()) return kNone;
  const FreeBlock best = pool.front(row);
  if (size < split_below_ && best.size >= split_below_) return kNone;
  if (size >= split_below_ && best.size >= size + kLargeSegment) return kNone;
  pool.erase(best);
  return best.block;
}

bool CachingAllocator::plain() const {
  return !settings_.expandable_segments && settings_.max_split_size.value == 0 &&
         settings_.garbage_collection_threshold == 0;
}

bool CachingAllocator::allocate_together(const std::vector<Bytes>& tensors, int times,
                                         std::vector<Block>& into) {
  const auto all = times * static_cast<std::int64_t>(tensors.size());
  if (all < kFewTensors || !plain()) return allocate_each(tensors, 0, all, into);
  begin_runs(tensors);
  std::int64_t done = 0;
  for (bool found = true; found && done < all;) {
    const Request& request = requests_[static_cast<std::size_t>(done) % tensors.size()];
    found = request.size == 0 || take(request, into);
    if (found) ++done;
  }
  end_runs();
  return allocate_each(tensors, done, all, into);
}

bool CachingAllocator::allocate_each(const std::vector<Bytes>& tensors, std::int64_t first,
                                     std::int64_t end, std::vector<Block>& into) {
  for (std::int64_t i = first; i < end; ++i) {
    const Bytes bytes = tensors[static_cast<std::size_t>(i) % tensors.size()];
    if (bytes.value <= 0) continue;
    const std::optional<Block> block = allocate(bytes);
    if (!block) return false;
    into.push_back(*block);
  }
  return true;
}

void CachingAllocator::begin_runs(const std::vector<Bytes>& tensors) {
  requests_.clear();
  for (const Bytes bytes : tensors) {
    const std::int64_t size = round_up(std::max(bytes.value, std::int64_t{0}), kRound);
    requests_.push_back({size, size <= kSmallRequest, 0});
    if (size > 0) runs_[requests_.back().small ? 1 : 0].add_size(size);
  }
  for (const bool small : {false, true}) runs_[small ? 1 : 0].begin(pool_of(small));
  for (Request& r : requests_)
    if (r.size > 0) r.size_class = runs_[r.small ? 1 : 0].class_of(r.size);
}

// What follows a block of this run in memory joins it.
bool CachingAllocator::take(const Request& request, std::vector<Block>& into) {
  BestFitRun& run = runs_[request.small ? 1 : 0];
  BestFitRun::Taken taken;
  if (!run.take(request.size_class, taken)) return false;
  const Block block = taken.block.block;
  const std::int64_t rest = taken.block.size - request.size;
  const bool cuts = should_split(nodes_[block], request.size);
  allocated_ += cuts ? request.size : taken.block.size;
  if (taken.rest) {
    const Block before = nodes_[block].previous;
    if (!cuts) {
      absorb(before, block);
      return true;
    }
    nodes_[before].size += request.size;
    nodes_[block].address += request.size;
    nodes_[block].size = rest;
    run.give_back(rest, nodes_[block].address, block);
    return true;
  }
  nodes_[block].used = true;
  into.push_back(block);
  if (!cuts) return true;
  const Block other = cut(block, request.size);
  nodes_[other].used = false;
  run.give_back(rest, nodes_[other].address, other);
  return true;
}

void CachingAllocator::end_runs() {
  for (BestFitRun& run : runs_) run.end();
  peak_allocated_ = std::max(peak_allocated_, allocated_);
}

void CachingAllocator::free_together(const Block* first, const Block* end) {
  if (end - first < kFewTensors || !plain()) {
    std::for_each(first, end, [&](Block block) { free(block); });
    return;
  }
  for (const Block* b = first; b != end; ++b) {
    nodes_[*b].used = false;
    nodes_[*b].fresh = true;
    allocated_ -= nodes_[*b].size;
  }
  for (const Block* b = first; b != end; ++b)
    if (nodes_[*b].fresh) collect_fresh(*b);
  for (const Block b : collected_) nodes_[b].fresh = false;
  collected_.clear();
  for (Pool& pool : pools_) pool.settle();
}

// With its free neighbours; what is fresh before it takes it along when its turn comes.
void CachingAllocator::collect_fresh(Block block) {
  const auto free_neighbour = [&](Block b) {
    if (b == kNone || nodes_[b].used) return false;
    const Node& n = nodes_[b];
    if (!n.fresh) pool_of(n.small).leaves(n.size, b);
    return true;
  };
  while (free_neighbour(nodes_[block].next)) absorb(block, nodes_[block].next);
  Block before = nodes_[block].previous;
  if (before != kNone && !nodes_[before].fresh && free_neighbour(before)) {
    absorb(before, block);
    nodes_[before].fresh = true;
    block = before;
    before = nodes_[block].previous;
  }
  if (before != kNone && nodes_[before].fresh) return;
  const Node& n = nodes_[block];
  pool_of(n.small).comes(n.size, n.address, block);
  collected_.push_back(block);
}

// A request finds a block if there are as many large enough ones as tensors at a time: each of
// them is in no more than one. Freed again, they leave what was free before.
bool CachingAllocator::unchanged_by(const PassingTensors& tensors) const {
  if (!plain()) return false;
  std::int64_t most = 0, largest = 0;
  for (const bool small : {false, true}) {
    const PassingTensors::OfPool& of = tensors.pools_[small ? 1 : 0];
    const auto count = std::min(static_cast<std::size_t>(of.count), tensors.at_once_);
    const Pool& pool = pool_of(small);
    if (!pool.has(count, of.largest)) return false;
    most += static_cast<std::int64_t>(count);
    largest = std::max(largest, of.largest);
  }
  return allocated_ + std::min(tensors.bytes_, most * largest) + most * kSmallRequest <=
         peak_allocated_;
}

void PassingTensors::add(Bytes request) {
  if (request.value <= 0) return;
  const std::int64_t size = round_up(request.value, kRound);
  OfPool& pool = pools_[size <= kSmallRequest ? 1 : 0];
  pool.largest = std::max(pool.largest, size);
  ++pool.count;
  bytes_ += size;
}

CachingAllocator::Block CachingAllocator::find_with_room(Pool& pool, std::int64_t size) {
  const auto with_room = [&](const FreeBlock& f) {
    const Block next = nodes_[f.block].next;
    return f.size + (next != kNone && !nodes_[next].mapped ? nodes_[next].size : 0);
  };
  std::optional<FreeBlock> best;
  pool.from(size, [&](const FreeBlock& f) {
    if (best && with_room(f) >= with_room(*best)) return false;
    best = f;
    return true;
  });
  if (!best) return kNone;
  pool.erase(*best);
  return best->block;
}

bool CachingAllocator::should_split(const Node& block, std::int64_t size) const {
  const std::int64_t rest = block.size - size;
  if (block.small || settings_.expandable_segments) return rest >= kRound;
  return size < split_below_ && rest > kSmallRequest;
}

// What is behind so many bytes of a block, as a block of its own.
CachingAllocator::Block CachingAllocator::cut(Block block, std::int64_t size) {
  const Block other = new_node();
  Node &of = nodes_[block], &rest = nodes_[other];
  rest.address = of.address + size;
  rest.size = of.size - size;
  rest.previous = block;
  rest.next = of.next;
  rest.small = of.small;
  rest.used = of.used;
  rest.mapped = of.mapped;
  rest.fresh = of.fresh;
  if (rest.next != kNone) nodes_[rest.next].previous = other;
  of.size = size;
  of.next = other;
  return other;
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
  nodes_[other].fresh = false;
  unused_.push_back(other);
}

void CachingAllocator::insert(Block block) {
  const Node& n = nodes_[block];
  if (settings_.garbage_collection_threshold > 0) {
    free_since_.resize(nodes_.size());
    free_since_[block] = searches_[n.small ? 1 : 0];
  }
  pool_of(n.small).insert(n.size, n.address, block);
}

void CachingAllocator::erase(Block block) {
  const Node& n = nodes_[block];
  pool_of(n.small).erase({n.size, n.address, block});
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
  Pool& pool = pool_of(small);
  const std::int64_t wanted = std::max(size, split_below_);
  if (const std::size_t row = pool.row_of(wanted); row < pool.rows()) {
    release(pool.front(row).block);
    return true;
  }
  std::int64_t released = 0;
  while (released < wanted && !pool.empty() && pool.largest().size >= split_below_) {
    released += pool.largest().size;
    release(pool.largest().block);
  }
  return released >= wanted;
}

void CachingAllocator::release_unused() {
  for (Pool& pool : pools_) {
    for (const FreeBlock& f : pool.all())
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
  const std::int64_t target = reserved_ - threshold;
  const auto whole = [&](const FreeBlock& f) {
    return nodes_[f.block].previous == kNone && nodes_[f.block].next == kNone;
  };
  const auto age_of = [&](const FreeBlock& f) { return searches_[0] - free_since_[f.block]; };
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

CachingAllocator::Block CachingAllocator::new_node() {
  if (unused_.empty()) {
    nodes_.emplace_back();
    return static_cast<Block>(nodes_.size() - 1);
  }
  const Block block = unused_.back();
  unused_.pop_back();
  return block;
}

CachingAllocator::Block CachingAllocator::make(const Node& node) {
  const Block block = new_node();
  nodes_[block] = node;
  return block;
}

void CachingAllocator::reserve(std::int64_t bytes) {
  ++changes_;
  reserved_ += bytes;
  peak_reserved_ = std::max(peak_reserved_, reserved_);
}

}  // namespace mllmsim
