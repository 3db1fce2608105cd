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

#include "sim/account/best_fit_run.hpp"
#include "sim/account/free_blocks.hpp"
#include "sim/base/units.hpp"
#include "sim/world/memory_settings.hpp"

namespace mllmsim {

// Tensors that are allocated and freed again before anything else is: at most so many, and so many
// bytes, at a time.
class PassingTensors {
 public:
  void add(Bytes request);
  void at_once(std::size_t most) { at_once_ = most; }

 private:
  friend class CachingAllocator;
  struct OfPool {
    std::int64_t largest = 0, count = 0;
  };
  OfPool pools_[2];  // large, small
  std::int64_t bytes_ = 0;
  std::size_t at_once_ = SIZE_MAX;
};

class CachingAllocator {
 public:
  using Block = std::uint32_t;

  CachingAllocator(const AllocatorSettings& settings, Bytes limit);

  // None: out of memory. A request of no bytes is none of memory.
  std::optional<Block> allocate(Bytes request);
  // So many times all of them, one after another, to be freed together: neighbours are one block.
  // False: out of memory; what was handed out until then is in `into`.
  bool allocate_together(const std::vector<Bytes>& tensors, int times, std::vector<Block>& into);
  void free(Block block);
  void free_together(const Block* first, const Block* end);
  // That they would find free blocks and set no new peak, as far as it is known without a trial.
  bool unchanged_by(const PassingTensors& tensors) const;

  Bytes allocated() const { return {allocated_}; }  // in blocks handed out, rounded
  Bytes reserved() const { return {reserved_}; }
  Bytes refused() const { return refused_; }  // the latest request that failed
  Bytes peak_allocated() const { return {peak_allocated_}; }
  Bytes peak_reserved() const { return {peak_reserved_}; }
  std::int64_t changes() const { return changes_; }    // of what is reserved
  std::int64_t retries() const { return retries_; }    // of allocations, after giving back segments
  std::int64_t segments() const { return segments_; }  // there now

 private:
  static constexpr Block kNone = UINT32_MAX;
  struct Node {
    std::int64_t address = 0;
    Block previous = kNone, next = kNone;  // neighbours in the segment
    std::int64_t size = 0;
    bool small = false, used = false, mapped = true;
    bool fresh = false;  // free, and not in its pool yet
  };
  struct Request {
    std::int64_t size = 0;
    bool small = false;
    std::size_t size_class = 0;
  };
  using Pool = FreeBlocks;

  Pool& pool_of(bool small) { return pools_[small ? 1 : 0]; }
  const Pool& pool_of(bool small) const { return pools_[small ? 1 : 0]; }
  Block find(std::int64_t size, bool small);
  Block find_with_room(Pool& pool, std::int64_t size);
  bool plain() const;
  bool allocate_each(const std::vector<Bytes>& tensors, std::int64_t first, std::int64_t end,
                     std::vector<Block>& into);
  void begin_runs(const std::vector<Bytes>& tensors);
  bool take(const Request& request, std::vector<Block>& into);
  void end_runs();
  void collect_fresh(Block block);
  Block new_segment(std::int64_t size, bool small);
  Block expand(std::int64_t size, bool small);
  Block map(Block hole, std::int64_t size);
  Block find_expandable(std::int64_t size, bool small) const;
  bool should_split(const Node& block, std::int64_t size) const;
  Block cut(Block block, std::int64_t size);
  void split(Block block, std::int64_t size) { insert(cut(block, size)); }
  Block merged(Block block);
  void absorb(Block into, Block other);
  void insert(Block block);
  void erase(Block block);
  void release(Block block);
  void unmap(Block block);
  bool release_large_enough(std::int64_t size, bool small);
  void release_unused();
  void collect_garbage();
  Block new_node();
  Block make(const Node& node);
  void reserve(std::int64_t bytes);

  AllocatorSettings settings_;
  std::int64_t limit_, split_below_;
  std::vector<Node> nodes_;
  std::vector<std::int64_t> free_since_;  // of nodes, in searches; for garbage collection
  std::vector<Block> unused_;             // numbers of nodes to be used again
  Pool pools_[2];                         // large, small
  // Of many at once, by pool; empty between calls.
  BestFitRun runs_[2];
  std::vector<Request> requests_;
  std::vector<Block> collected_;
  Block unmapped_tail_[2]{kNone, kNone};  // of the expandable segments
  std::int64_t searches_[2]{};            // of the pools, as many as allocations
  Bytes refused_{};
  std::int64_t next_address_ = 0, segments_ = 0;
  std::int64_t allocated_ = 0, reserved_ = 0, peak_allocated_ = 0, peak_reserved_ = 0, retries_ = 0,
               changes_ = 0;
};

}  // namespace mllmsim
