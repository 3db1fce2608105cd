// What PyTorch's own allocator did with sequences of allocations (recorded_allocations.txt, see
// tests/README.md): the model does the same after every operation.
#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <sstream>

#include "sim/account/caching_allocator.hpp"

namespace mllmsim {
namespace {

struct Figures {
  char result = 'k';  // o: out of memory
  std::int64_t allocated = 0, reserved = 0, retries = 0;
  bool operator==(const Figures&) const = default;
};

class Recorded {
 public:
  void settings(std::istream& in) {
    AllocatorSettings s;
    std::int64_t split_mib = 0, limit = 0;
    in >> s.expandable_segments >> split_mib >> s.garbage_collection_threshold >>
        s.memory_fraction >> limit;
    s.max_split_size = Bytes{split_mib << 20};
    allocator_.emplace(s, Bytes{limit});
    live_.clear();
  }
  Figures operation(char name, std::istream& in) {
    std::int64_t number = 0, bytes = 0;
    in >> number;
    char result = 'k';
    if (name == 'a') {
      in >> bytes;
      if (const auto block = allocator_->allocate(Bytes{bytes}))
        live_[number] = *block;
      else
        result = 'o';
    } else {
      allocator_->free(live_.at(number));
      live_.erase(number);
    }
    return {result, allocator_->allocated().value, allocator_->reserved().value,
            allocator_->retries()};
  }

 private:
  std::optional<CachingAllocator> allocator_;
  std::map<std::int64_t, CachingAllocator::Block> live_;
};

TEST(CachingAllocator, DoesWhatPyTorchsDid) {
  std::ifstream file(MLLMSIM_SOURCE_DIR "/tests/sim/account/recorded_allocations.txt");
  Recorded recorded;
  std::string line;
  int settings = 0, operations = 0;
  for (int number = 1; std::getline(file, line); ++number) {
    std::istringstream in(line);
    std::string word;
    in >> word;
    if (word == "#") continue;
    if (word == "settings") {
      recorded.settings(in);
      ++settings;
      continue;
    }
    const Figures predicted = recorded.operation(word[0], in);
    Figures seen;
    in >> seen.result >> seen.allocated >> seen.reserved >> seen.retries;
    ASSERT_TRUE(in) << "line " << number;
    ASSERT_EQ(predicted, seen) << "line " << number << ": " << line << ", but reserved "
                               << predicted.reserved;
    ++operations;
  }
  EXPECT_EQ(settings, 12);
  EXPECT_GT(operations, 3700);
}

}  // namespace
}  // namespace mllmsim
