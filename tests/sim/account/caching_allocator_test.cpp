// PyTorch's caching allocator by hand, in MiB, and what must hold whatever is asked of it.
#include "sim/account/caching_allocator.hpp"

#include <gtest/gtest.h>
#include <rapidcheck.h>

namespace mllmsim {
namespace {

constexpr std::int64_t kMiB = 1 << 20;

Bytes mib(double n) { return {static_cast<std::int64_t>(n * kMiB)}; }

struct Allocator : CachingAllocator {
  explicit Allocator(AllocatorSettings settings = {}, Bytes limit = mib(1000))
      : CachingAllocator(settings, limit) {}
  double reserved_mib() const { return static_cast<double>(reserved().value) / kMiB; }
  double allocated_mib() const { return static_cast<double>(allocated().value) / kMiB; }
};

AllocatorSettings expandable() {
  AllocatorSettings s;
  s.expandable_segments = true;
  return s;
}

TEST(CachingAllocator, SegmentsAre2And20MiBOrTheRequest) {
  Allocator a;
  a.allocate(Bytes{1});
  EXPECT_EQ(a.allocated(), Bytes{512});
  EXPECT_EQ(a.reserved_mib(), 2);
  a.allocate(mib(1.5));
  EXPECT_EQ(a.reserved_mib(), 2 + 20);
  a.allocate(mib(9));  // from the 20, of which 18.5 were left
  EXPECT_EQ(a.reserved_mib(), 2 + 20);
  a.allocate(mib(11));  // 9.5 are left: its own segment, rounded to 2
  EXPECT_EQ(a.reserved_mib(), 2 + 20 + 12);
}

// 100 is taken for 70 and its rest for 29; what is left, 1, is no block: 30 are handed out.
TEST(CachingAllocator, SplitsWhatIsMoreThanOneMiBTooLarge) {
  Allocator a;
  a.free(*a.allocate(mib(100)));
  a.allocate(mib(70));
  a.allocate(mib(29));
  EXPECT_EQ(a.allocated_mib(), 100);
  EXPECT_EQ(a.reserved_mib(), 100);
}

TEST(CachingAllocator, TakesTheSmallestBlockThatIsLargeEnough) {
  Allocator a;
  const auto large = a.allocate(mib(100)), fitting = a.allocate(mib(40));
  a.free(*large);
  a.free(*fitting);
  a.allocate(mib(40));
  a.allocate(mib(100));
  EXPECT_EQ(a.reserved_mib(), 140);
}

TEST(CachingAllocator, FreeNeighboursMergeWithinTheirSegment) {
  Allocator a;
  a.free(*a.allocate(mib(100)));
  const auto one = a.allocate(mib(50)), two = a.allocate(mib(50));
  a.free(*one);
  a.free(*two);
  a.allocate(mib(100));
  EXPECT_EQ(a.reserved_mib(), 100);
}

// Shapes that vary: 60 and 60 free in two segments do not serve 100. Above the limit of 200 both
// are given back (a retry); a segment of which a part is used is not.
TEST(CachingAllocator, GivesBackUnusedSegmentsBeforeItRunsOut) {
  Allocator a({}, mib(200));
  const auto one = a.allocate(mib(60)), two = a.allocate(mib(60));
  a.free(*one);
  a.free(*two);
  EXPECT_TRUE(a.allocate(mib(100)));
  EXPECT_EQ(a.reserved_mib(), 100);
  EXPECT_EQ(a.retries(), 1);
  EXPECT_EQ(a.peak_reserved(), mib(120));

  Allocator b({}, mib(200));
  b.free(*b.allocate(mib(120)));
  b.allocate(mib(20));                 // of the 120
  EXPECT_FALSE(b.allocate(mib(110)));  // 20 are used, 180 are free, in two places
  EXPECT_EQ(b.reserved_mib(), 120);
}

// The same two frees with one segment that grows: 120 side by side, 20 more pages are not needed.
TEST(CachingAllocator, ExpandableSegmentsGrowInsteadOfFragmenting) {
  Allocator a(expandable());
  const auto one = a.allocate(mib(60)), two = a.allocate(mib(60));
  EXPECT_EQ(a.reserved_mib(), 120);
  a.free(*one);
  a.free(*two);
  const auto all = a.allocate(mib(130));
  EXPECT_EQ(a.reserved_mib(), 140);  // pages of 20
  a.free(*all);
  Allocator b(expandable(), mib(120));
  const auto front = b.allocate(mib(60));
  b.allocate(mib(40));
  b.free(*front);
  EXPECT_TRUE(b.allocate(mib(80)));  // the front's pages are unmapped and mapped again behind
  EXPECT_LE(b.reserved_mib(), 120);
}

// Blocks of 100 and more are not split: 60 gets its own, 110 may take 120, not 140.
TEST(CachingAllocator, MaxSplitSizeKeepsLargeBlocksWhole) {
  AllocatorSettings s;
  s.max_split_size = mib(100);
  Allocator a(s);
  const auto large = a.allocate(mib(140)), other = a.allocate(mib(120));
  a.free(*large);
  a.free(*other);
  a.allocate(mib(60));
  EXPECT_EQ(a.reserved_mib(), 140 + 120 + 60);
  a.allocate(mib(110));
  EXPECT_EQ(a.reserved_mib(), 140 + 120 + 60);
  EXPECT_EQ(a.allocated_mib(), 120 + 60);
}

// Above half of 200: the older of two unused segments goes before a new one is made.
TEST(CachingAllocator, GarbageCollectionReleasesWhatIsOld) {
  AllocatorSettings s;
  s.garbage_collection_threshold = 0.5;
  s.memory_fraction = 1;
  Allocator a(s, mib(200));
  const auto one = a.allocate(mib(60)), two = a.allocate(mib(50));
  a.free(*one);
  a.free(*a.allocate(mib(1.5)));  // time passes; 1.5 of the 60
  a.free(*two);
  a.allocate(mib(70));
  EXPECT_EQ(a.retries(), 0);
  EXPECT_LE(a.reserved_mib(), 50 + 70 + 20);
}

AllocatorSettings random_settings() {
  AllocatorSettings s;
  s.expandable_segments = *rc::gen::arbitrary<bool>();
  s.max_split_size = mib(*rc::gen::element(0, 20, 64));
  s.garbage_collection_threshold = *rc::gen::element(0.0, 0.6);
  s.memory_fraction = *rc::gen::element(0.0, 1.0);
  return s;
}

// Allocated is the sum of what is handed out, between the requests and what is reserved, which is
// never above the limit; what fails would not fit beside what is allocated, fragments included; and
// when all is freed, everything can be had at once again.
TEST(CachingAllocator, KeepsItsAccounts) {
  EXPECT_TRUE(rc::check([] {
    const AllocatorSettings settings = random_settings();
    const Bytes limit = mib(*rc::gen::inRange(64, 400));
    CachingAllocator a(settings, limit);
    std::vector<std::pair<CachingAllocator::Block, std::int64_t>> live;
    std::int64_t requested = 0;
    for (int i = 0; i < 200; ++i) {
      if (!live.empty() && *rc::gen::inRange(0, 5) < 2) {
        const auto at =
            static_cast<std::size_t>(*rc::gen::inRange<int>(0, static_cast<int>(live.size())));
        a.free(live[at].first);
        requested -= live[at].second;
        live.erase(live.begin() + static_cast<std::ptrdiff_t>(at));
      } else {
        const std::int64_t bytes = *rc::gen::element<std::int64_t>(
            1, 700, kMiB / 2, kMiB, kMiB + 1, 5 * kMiB, 10 * kMiB, 33 * kMiB, 47 * kMiB + 3);
        if (const auto block = a.allocate(Bytes{bytes})) {
          live.emplace_back(*block, bytes);
          requested += bytes;
        } else {
          RC_ASSERT(a.reserved().value + bytes + 20 * kMiB > limit.value);
        }
      }
      RC_ASSERT(a.allocated().value >= requested);
      RC_ASSERT(a.allocated() <= a.reserved());
      RC_ASSERT(a.reserved() <= limit);
      RC_ASSERT(a.reserved() <= a.peak_reserved());
      RC_ASSERT(a.allocated() <= a.peak_allocated());
    }
    for (const auto& [block, bytes] : live) a.free(block);
    RC_ASSERT(a.allocated() == Bytes{0});
    RC_ASSERT(a.allocate(Bytes{limit.value / (20 * kMiB) * (20 * kMiB) - 20 * kMiB}).has_value());
  }));
}

// Rows of like layers, taken together or tensor by tensor, and freed as a whole in any order; after
// each the same is allocated and reserved, and as much fails.
TEST(CachingAllocator, TogetherIsAsOneByOne) {
  EXPECT_TRUE(rc::check([] {
    const AllocatorSettings settings = random_settings();
    const Bytes limit = mib(*rc::gen::inRange(200, 4000));
    CachingAllocator one(settings, limit), other(settings, limit);
    using Blocks = std::vector<CachingAllocator::Block>;
    std::vector<std::pair<Blocks, Blocks>> live;
    for (int i = 0; i < 100; ++i) {
      if (!live.empty() && *rc::gen::inRange(0, 5) < 2) {
        const auto at =
            static_cast<std::size_t>(*rc::gen::inRange<int>(0, static_cast<int>(live.size())));
        const auto& [a, b] = live[at];
        for (const auto block : a) one.free(block);
        other.free_together(b.data(), b.data() + b.size());
        live.erase(live.begin() + static_cast<std::ptrdiff_t>(at));
      } else {
        auto sizes = *rc::gen::container<std::vector<Bytes>>(
            *rc::gen::inRange<std::size_t>(1, 6),
            rc::gen::construct<Bytes>(rc::gen::element<std::int64_t>(
                0, 700, kMiB / 2, kMiB + 1, 3 * kMiB, 3 * kMiB + 700, 7 * kMiB, 17 * kMiB)));
        const int times = *rc::gen::inRange(1, 9);
        Blocks a, b;
        bool failed = false;
        for (int n = times; n > 0; --n)
          for (const Bytes size : sizes) {
            if (size.value == 0 || failed) continue;
            const auto block = one.allocate(size);
            if (block) a.push_back(*block);
            failed = !block;
          }
        RC_ASSERT(other.allocate_together(sizes, times, b) == !failed);
        live.emplace_back(std::move(a), std::move(b));
      }
      RC_ASSERT(one.allocated() == other.allocated());
      RC_ASSERT(one.reserved() == other.reserved());
      RC_ASSERT(one.peak_allocated() == other.peak_allocated());
      RC_ASSERT(one.retries() == other.retries());
      RC_ASSERT(one.refused() == other.refused());
    }
  }));
}

// What is said to change nothing: no memory and no peak more, and what follows goes where it went.
TEST(CachingAllocator, PassingTensorsMayLeaveNoTrace) {
  EXPECT_TRUE(rc::check([] {
    const Bytes limit = mib(1000);
    CachingAllocator with({}, limit), without({}, limit);
    std::vector<std::pair<CachingAllocator::Block, CachingAllocator::Block>> live;
    const auto size = rc::gen::construct<Bytes>(
        rc::gen::element<std::int64_t>(700, kMiB / 2, 3 * kMiB, 5 * kMiB, 17 * kMiB, 30 * kMiB));
    for (int i = 0; i < 100; ++i) {
      if (!live.empty() && *rc::gen::inRange(0, 5) < 2) {
        const auto at =
            static_cast<std::size_t>(*rc::gen::inRange<int>(0, static_cast<int>(live.size())));
        with.free(live[at].first);
        without.free(live[at].second);
        live.erase(live.begin() + static_cast<std::ptrdiff_t>(at));
      } else if (const Bytes bytes = *size; const auto block = with.allocate(bytes)) {
        live.emplace_back(*block, *without.allocate(bytes));
      }
      const auto at_once = *rc::gen::inRange<std::size_t>(1, 4);
      PassingTensors passing;
      const auto sizes = *rc::gen::container<std::vector<Bytes>>(4, size);
      for (const Bytes bytes : sizes) passing.add(bytes);
      passing.at_once(at_once);
      if (with.unchanged_by(passing)) {
        std::vector<CachingAllocator::Block> blocks;
        for (const Bytes bytes : sizes) {
          if (blocks.size() == at_once) {
            with.free(blocks.front());
            blocks.erase(blocks.begin());
          }
          blocks.push_back(*with.allocate(bytes));
        }
        for (const auto block : blocks) with.free(block);
      }
      RC_ASSERT(with.allocated() == without.allocated());
      RC_ASSERT(with.reserved() == without.reserved());
      RC_ASSERT(with.peak_allocated() == without.peak_allocated());
    }
  }));
}

// The same requests again and again reserve nothing more after the first round.
TEST(CachingAllocator, RepeatedStepsReserveOnce) {
  EXPECT_TRUE(rc::check([] {
    AllocatorSettings settings;
    settings.expandable_segments = *rc::gen::arbitrary<bool>();
    CachingAllocator a(settings, mib(100000));
    const auto sizes = *rc::gen::container<std::vector<std::int64_t>>(
        20, rc::gen::inRange<std::int64_t>(1, 60 * kMiB));
    Bytes after_first{};
    for (int round = 0; round < 5; ++round) {
      std::vector<CachingAllocator::Block> live;
      for (const std::int64_t size : sizes) live.push_back(*a.allocate(Bytes{size}));
      for (const auto block : live) a.free(block);
      if (round == 0) after_first = a.reserved();
    }
    RC_ASSERT(a.allocated() == Bytes{0});
    RC_ASSERT(a.reserved().value <= 2 * after_first.value);
  }));
}

}  // namespace
}  // namespace mllmsim
