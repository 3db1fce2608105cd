// PyTorch's CUDACachingAllocator (c10/cuda/CUDACachingAllocator.cpp), one device, one stream.
//
// A request is rounded up to 512 bytes and served from the free blocks of its pool, the smallest
// that is large enough and of those the first by address; if there is none, from a new segment:
//
//   request        pool    segment
//   <= 1 MiB       small   2 MiB
//   < 10 MiB       large   20 MiB
//   otherwise      large   the request, rounded up to 2 MiB
//
// What a block has too much becomes a block of its own: from 512 bytes on in the small pool, above
// 1 MiB in the large one. Freed blocks merge with free neighbours in their segment and stay
// reserved. With max_split_size larger blocks are not split and serve only requests that leave less
// than 20 MiB. With expandable_segments a pool is one segment that grows by 2 MiB (small) or 20 MiB
// (large) pages, always splits, and can give back any free page.
//
// If a new segment would exceed the limit: first unused blocks above max_split_size are released,
// enough for the request, then every segment without a used block (a retry, which costs a
// synchronisation); if it still does not fit, the allocation fails. garbage_collection_threshold
// releases segments that were not used for longer than the average before that, once reserved
// memory is above that share of the limit, if a memory fraction is set.
//
// Checked operation by operation against PyTorch's own (recorded_allocations_test.cpp).
// Left out: several streams, CUDA graphs' private pools, roundup_power2_divisions, and that the
// addresses of an expandable segment end at 9/8 of the GPU's memory.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "sim/account/free_blocks.hpp"
#include "sim/base/units.hpp"
#include "sim/world/memory_settings.hpp"

namespace mllmsim {

// Tensors that are allocated one after another and freed together.
struct TensorsTogether {
  struct Pool {
    std::int64_t smallest = 0, total = 0;  // rounded as the allocator does
  };
  Pool large, small;

  void add(Bytes request);
};

class CachingAllocator {
 public:
  using Block = std::uint32_t;

  CachingAllocator(const AllocatorSettings& settings, Bytes limit);

  // None: out of memory. A request of no bytes is none of memory.
  std::optional<Block> allocate(Bytes request);
  // So many times all of them, if each would come from one and the same free block of its pool,
  // which then is one block; otherwise false, and nothing has changed.
  bool allocate_together(const TensorsTogether& tensors, std::int64_t times,
                         std::vector<Block>& into);
  void free(Block block);

  Bytes allocated() const { return {allocated_}; }  // in blocks handed out, rounded
  Bytes reserved() const { return {reserved_}; }
  Bytes peak_allocated() const { return {peak_allocated_}; }
  Bytes peak_reserved() const { return {peak_reserved_}; }
  std::int64_t retries() const { return retries_; }    // of allocations, after giving back segments
  std::int64_t segments() const { return segments_; }  // there now

 private:
  static constexpr Block kNone = UINT32_MAX;
  struct Node {
    std::int64_t address = 0, size = 0;
    Block previous = kNone, next = kNone;  // neighbours in the segment
    std::int64_t free_since = 0;           // in searches of its pool, for garbage collection
    bool small = false, used = false, mapped = true;
  };
  using Pool = FreeBlocks;

  Pool& pool_of(bool small) { return pools_[small ? 1 : 0]; }
  const Pool& pool_of(bool small) const { return pools_[small ? 1 : 0]; }
  FreeBlock or_latest(const FreeBlock& best, std::int64_t size, bool small) const;
  Block find(std::int64_t size, bool small);
  Block find_with_room(Pool& pool, std::int64_t size);
  Block new_segment(std::int64_t size, bool small);
  Block expand(std::int64_t size, bool small);
  Block map(Block hole, std::int64_t size);
  Block find_expandable(std::int64_t size, bool small) const;
  bool should_split(const Node& block, std::int64_t size) const;
  void split(Block block, std::int64_t size);
  Block merged(Block block);
  void absorb(Block into, Block other);
  void insert(Block block);
  void store_latest();
  void erase(Block block);
  void release(Block block);
  void unmap(Block block);
  bool release_large_enough(std::int64_t size, bool small);
  void release_unused();
  void collect_garbage();
  Block make(const Node& node);
  void reserve(std::int64_t bytes);

  AllocatorSettings settings_;
  std::int64_t limit_, split_below_;
  std::vector<Node> nodes_;
  std::vector<Block> unused_;  // numbers of nodes to be used again
  Pool pools_[2];              // large, small
  // Free, and not in its pool yet: often the next request takes it, or a neighbour joins it.
  Block latest_ = kNone;
  Block unmapped_tail_[2]{kNone, kNone};  // of the expandable segments
  std::int64_t searches_[2]{};            // of the pools, as many as allocations
  std::int64_t next_address_ = 0, segments_ = 0;
  std::int64_t allocated_ = 0, reserved_ = 0, peak_allocated_ = 0, peak_reserved_ = 0, retries_ = 0;
};

}  // namespace mllmsim
