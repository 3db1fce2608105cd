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
}

// On one GPU, 16 micro-batches: half of 8 blocks take as much longer as if all were wide.
TEST(BlockKinds, EachTakesItsOwnTime) {
  const auto computing = [](Job job) {
    job.parallelism = {.micro_batch_size = 2, .global_batch_size = 32};
    const Simulated s = simulate_job(job);
    Time sum{};
    for (const Task& task : s.program.tasks())
      if (task.kind == TaskKind::forward || task.kind == TaskKind::backward) sum += task.duration;
    return sum;
  };
  Job wide = small_job();
  wide.model.llm.blocks.intermediate_size *= 4;
  const Time narrow = computing(small_job());
  EXPECT_EQ((computing(two_kinds(Granularity::stage)) - narrow) * 2, computing(wide) - narrow);
}

// Blocks in pairs, a wide one first: its weight gradients need more than all that the pair brings
// back, though the narrow one's backward comes first.
TEST(BlockKinds, RecomputedTogetherNeedAsMuchMemoryAtBothGranularities) {
  const auto needed = [](Granularity granularity) {
    Job job = small_job();
    job.granularity = granularity;
    job.parallelism = {.micro_batch_size = 1, .global_batch_size = 1};
    job.data.tokens_per_sample = 128;
    job.recompute.llm = Recompute::full;
    job.recompute.num_layers = 2;
    job.software.grad_accumulation_bytes_per_parameter = 10;
    Llm& llm = job.model.llm;
    llm.other_blocks.kinds = {llm.blocks};
    llm.blocks.intermediate_size *= 16;
    for (std::int64_t i = 0; i < llm.blocks.num_hidden_layers; ++i)
      llm.other_blocks.kind_of_layer.push_back(static_cast<std::uint8_t>(i % 2));
    return peak(simulate_job(job).memory().front());
  };
  EXPECT_EQ(needed(Granularity::stage), needed(Granularity::kernel));
}

}  // namespace
}  // namespace mllmsim
