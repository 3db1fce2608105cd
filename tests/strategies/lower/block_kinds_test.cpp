// Blocks of one module that are not all of one kind: each costs what its own kind does, whether
// layers are counted (stage granularity) or listed (kernel granularity).
#include <gtest/gtest.h>

#include "tests/strategies/small_job.hpp"

namespace mllmsim {
namespace {

// Every second block has an MLP four times as wide.
Job two_kinds(Granularity granularity) {
  Job job = small_job();
  job.granularity = granularity;
  Llm& llm = job.model.llm;
  Transformer wide = llm.blocks;
  wide.intermediate_size *= 4;
  llm.other_blocks.kinds = {wide};
  for (std::int64_t i = 0; i < llm.blocks.num_hidden_layers; ++i)
    llm.other_blocks.kind_of_layer.push_back(static_cast<std::uint8_t>(i % 2));
  return job;
}

TEST(BlockKinds, BothGranularitiesTakeTheSameTime) {
  const Time by_stage = simulate_job(two_kinds(Granularity::stage)).span();
  EXPECT_EQ(by_stage, simulate_job(two_kinds(Granularity::kernel)).span());
  EXPECT_GT(by_stage, simulate_job(small_job()).span());
}

}  // namespace
}  // namespace mllmsim
