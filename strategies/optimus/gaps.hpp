// Free time of a stream, as a list of gaps in time order, and placing kernels into it.
//
// A kernel goes whole into one gap. In a gap that is a tp bubble it is slowed by the LLM's
// collective beside it. Placing only finds a place; GapList::take makes it occupied.
//
// A step has millions of gaps and kernels. So gaps lie in blocks of a bounded size: placing passes
// over a block whose longest gap is too short, and taking a place touches its block alone.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "sim/base/units.hpp"

namespace mllmsim::optimus {

inline constexpr Time kAlways{INT64_MAX / 4};

struct Gap {
  Time from, to;
  bool tp_bubble = false;  // between kernels of one pass: the LLM waits for a collective

  bool operator==(const Gap&) const = default;
};

class GapList {
 public:
  // In time order, the last without an end (to kAlways).
  explicit GapList(const std::vector<Gap>& gaps);

  // What is taken is no gap any more. `taken`: places that a cursor found, in time order.
  void take(std::span<const Gap> taken);

  std::vector<Gap> gaps() const;

 private:
  friend class GapCursor;

  struct Block {
    explicit Block(std::vector<Gap> of);
    bool may_fit(Time duration, Time slowed) const {
      return longest >= duration || longest_tp_bubble >= slowed;
    }
    std::shared_ptr<const std::vector<Gap>> gaps;  // never empty; lists that were copied share it
    Time longest{}, longest_tp_bubble{};
  };
  // The block with the first gap that ends after `time`; looks from block `from` on.
  std::size_t block_at(Time time, std::size_t from = 0) const;
  static std::size_t gap_at(const Block& block, Time time);
  std::size_t take_from_block(std::size_t block, std::span<const Gap> taken);

  std::vector<Block> blocks_;
};

// How far the kernels of one pass have been placed; only ever moves on. Nothing is taken meanwhile.
class GapCursor {
 public:
  GapCursor(const GapList& gaps, Time from);

  // The first place from `earliest` on, behind what was placed before. `slowed`: the kernel's time
  // in a tp bubble.
  Gap place(Time earliest, Time duration, Time slowed);

 private:
  const GapList& gaps_;
  std::size_t block_ = 0, gap_ = 0;
  Time free_;
};

}  // namespace mllmsim::optimus
