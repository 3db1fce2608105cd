#include "sim/account/free_blocks.hpp"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <set>

namespace mllmsim {
namespace {

// Rows of sizes against one sorted set, whatever comes and goes, alone or together.
TEST(FreeBlocks, AreASortedSet) {
  EXPECT_TRUE(rc::check([] {
    FreeBlocks blocks;
    std::set<FreeBlock> plain;
    std::int64_t address = 0;
    std::uint32_t number = 0;
    const auto new_block = [&] {
      const auto size = 512 * *rc::gen::inRange<std::int64_t>(1, 9);
      address += 512 * *rc::gen::inRange<std::int64_t>(1, 5);
      // Now and then before what is there.
      const std::int64_t at = *rc::gen::arbitrary<bool>() ? address : -address;
      return FreeBlock{size, at, number += *rc::gen::inRange(1U, 100U)};
    };
    const auto any = [&] {
      return *std::next(plain.begin(), *rc::gen::inRange<std::ptrdiff_t>(
                                           0, static_cast<std::ptrdiff_t>(plain.size())));
    };
    for (int i = 0; i < 60; ++i) {
      switch (*rc::gen::inRange(0, 4)) {
        case 0: {
          const FreeBlock f = new_block();
          blocks.insert(f.size, f.address, f.block);
          plain.insert(f);
          break;
        }
        case 1:
          if (plain.empty()) break;
          plain.erase([&] {
            const FreeBlock f = any();
            blocks.erase(f);
            return f;
          }());
          break;
        case 2: {  // a run takes from the front of rows
          const auto size = 512 * *rc::gen::inRange<std::int64_t>(1, 9);
          for (int n = *rc::gen::inRange(0, 4); n > 0; --n) {
            const auto best = plain.lower_bound({size, INT64_MIN, 0});
            std::size_t row = blocks.row_of(size);
            while (row < blocks.rows() && blocks.empty(row)) ++row;
            RC_ASSERT((row < blocks.rows()) == (best != plain.end()));
            if (best == plain.end()) break;
            RC_ASSERT(blocks.front(row).block == best->block);
            blocks.pop_front(row);
            plain.erase(best);
          }
          blocks.settle();
          break;
        }
        default: {
          std::set<FreeBlock> gone;
          for (int n = *rc::gen::inRange(0, 6); n > 0 && !plain.empty(); --n) gone.insert(any());
          for (const FreeBlock& f : gone) {
            blocks.leaves(f.size, f.block);
            plain.erase(f);
          }
          for (int n = *rc::gen::inRange(0, 6); n > 0; --n) {
            const FreeBlock f = new_block();
            blocks.comes(f.size, f.address, f.block);
            plain.insert(f);
          }
          blocks.settle();
        }
      }
      const std::vector<FreeBlock> all = blocks.all();
      RC_ASSERT(blocks.size() == plain.size());
      RC_ASSERT(std::ranges::equal(all, plain, {}, &FreeBlock::block, &FreeBlock::block));
      const auto size = 512 * *rc::gen::inRange<std::int64_t>(1, 10);
      const auto as_large = static_cast<std::size_t>(
          std::ranges::count_if(plain, [&](const FreeBlock& f) { return f.size >= size; }));
      RC_ASSERT(blocks.has(as_large, size) && !blocks.has(as_large + 1, size));
      if (!plain.empty()) RC_ASSERT(blocks.largest().block == plain.rbegin()->block);
    }
  }));
}

}  // namespace
}  // namespace mllmsim
