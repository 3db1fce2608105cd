// Model state by ZeRO stage, by hand.
//
// A block of width 8 with an MLP of 32 and no biases has 4 * 8 * 8 + 2 * 8 * 32 + 2 * 16 = 800
// parameters: 400 per GPU with tp 2. Each is 2 bytes of weights, 4 of gradients, 12 of optimizer.
#include "strategies/step/plan_memory.hpp"

#include <gtest/gtest.h>

namespace mllmsim {
using namespace step;
namespace {

Job job_with(int zero_stage) {
  Job job;
  job.model.llm.blocks = {.num_hidden_layers = 3,
                          .hidden_size = 8,
                          .num_attention_heads = 2,
                          .num_key_value_heads = 2,
                          .head_dim = 4,
                          .intermediate_size = 32,
                          .qkv_bias = false,
                          .linear_bias = false};
  job.parallelism.tensor_model_parallel_size = 2;
  job.parallelism.data_parallel_size = 4;
  job.parallelism.zero_stage = zero_stage;
  job.software.memory.gemm_workspaces = Bytes{200};
  job.software.memory.context = Bytes{300};
  job.software.memory.per_communicator = Bytes{100};
  job.software.memory_reserve = Bytes{200};
  return job;
}

Chunk blocks(std::uint32_t count, std::uint16_t module = 0) {
  Chunk chunk;
  for (std::uint32_t i = 0; i < count; ++i)
    chunk.push_back({{LayerKind::block, module, i}, Recompute::none});
  return chunk;
}

Plan one_block() {
  Plan plan;
  plan.stages = {{blocks(1)}};
  return plan;
}

std::vector<std::int64_t> state(const Job& job, const Plan& plan) {
  const Holdings s = rank_state(job, plan, 0).held;
  return {s[Holding::weights].value, s[Holding::gradients].value, s[Holding::optimizer].value};
}
using State = std::vector<std::int64_t>;

TEST(RankState, WithoutShardingIsWhole) {
  EXPECT_EQ(state(job_with(0), one_block()), (State{800, 1600, 4800}));
}

TEST(RankState, ZeroStage1ShardsTheOptimizerOverDp) {
  EXPECT_EQ(state(job_with(1), one_block()), (State{800, 1600, 1200}));
}

TEST(RankState, ZeroStage3ShardsEverything) {
  EXPECT_EQ(state(job_with(3), one_block()), (State{200, 400, 1200}));
}

TEST(RankState, FrozenParametersAreWeightsOnly) {
  Job job = job_with(0);
  job.model.llm.trained = false;
  EXPECT_EQ(state(job, one_block()), (State{800, 0, 0}));
}

// DeepSpeed's bf16 optimizer: 2 bytes of gradients beside the 4 that are added up in.
TEST(RankState, ModelGradientsAreKeptBesideTheMainOnes) {
  Job job = job_with(1);
  job.software.memory.model_grad_bytes_per_parameter = 2;
  const Holdings held = rank_state(job, one_block(), 0).held;
  EXPECT_EQ(held[Holding::model_gradients], Bytes{800});
  EXPECT_EQ(held.model_state(), Bytes{800 + 1600 + 800 + 1200});
}

// fp32 copies of the gradients that a rank updates: 4 of the 12 bytes that the optimizer has.
TEST(RankState, TheOptimizerStepNeedsCopiesOfItsShard) {
  Job job = job_with(1);
  job.software.memory.optimizer_step_bytes_per_parameter = 4;
  EXPECT_EQ(rank_state(job, one_block(), 0).end.most(), Bytes{400});
}

// DeepSpeed's ZeRO-1: of 400 parameters at most 300 are copied at once to be reduced (2 bytes), and
// of the largest gradient, 8 x 32 over two ranks, its rank's share of 100 is looked at in fp32 and
// fp64; then the optimizer's flat and fp32 copies of 100. After a backward: the largest in fp32.
TEST(RankState, AStepEndsWithCopiesOfGradientsOneAfterTheOther) {
  Job job = job_with(1);
  MemorySettings& m = job.software.memory;
  m.reduce_copy_bytes_per_parameter = 2;
  m.reduce_copy_parameters = 300;
  m.overflow_check_bytes_per_parameter = 4;
  m.grad_norm_bytes_per_parameter = 8;
  m.grad_cast_bytes_per_parameter = 4;
  m.optimizer_step_bytes_per_parameter = 6;
  const StepEnd end = rank_state(job, one_block(), 0).end;
  using Phases = std::vector<std::vector<Bytes>>;
  EXPECT_EQ(end.phases,
            (Phases{{Bytes{600}}, {Bytes{400}}, {Bytes{800}}, {Bytes{200}, Bytes{400}}}));
  EXPECT_EQ(end.after_backward, Bytes{4 * 128});
  EXPECT_EQ(end.most(), Bytes{800});
}

// A vocabulary of 100 rows of 8 on two ranks: 400 parameters each, on the first stage as the
// embedding and on the last as the head's copy, behind a norm of 8.
TEST(RankState, ATiedHeadOnAnotherStageHasACopyOfTheEmbedding) {
  Job job = job_with(0);
  job.model.llm.vocab_size = 100;
  job.model.llm.tie_word_embeddings = true;
  Plan plan;
  plan.stages = {{{{{LayerKind::embedding, 0, 0}}}}, {{{{LayerKind::head, 0, 0}}}}};
  EXPECT_EQ(rank_state(job, plan, 0).parameters, 400);
  EXPECT_EQ(rank_state(job, plan, 1).parameters, 408);
  plan.stages = {{{{{LayerKind::embedding, 0, 0}}, {{LayerKind::head, 0, 0}}}}};
  EXPECT_EQ(rank_state(job, plan, 0).parameters, 408);
}

TEST(RankState, VirtualStagesAddUp) {
  Plan plan;
  plan.stages = {{blocks(1), blocks(2)}};
  EXPECT_EQ(rank_state(job_with(0), plan, 0).parameters, 3 * 400);
}

// An encoder block with tp 1 has 800 parameters per GPU, its optimizer sharded over 8 GPUs:
// 1600 + 3200 + 1200 beside the LLM's 800 + 1600 + 1200.
TEST(RankState, EncodersBesideTheLlmHaveTheirOwnParallelSizes) {
  Job job = job_with(1);
  Encoder e;
  e.blocks = job.model.llm.blocks;
  job.model.encoders = {e};
  Plan plan;
  plan.stages = {{blocks(1, 1)}};
  plan.encoders.emplace();
  plan.encoders->stages = {blocks(1, 0)};
  EXPECT_EQ(state(job, plan), (State{2400, 4800, 2400}));
}

// Workspaces 200, context 300, reserve 200; NCCL's buffers of the world, tp and dp 300: 1000.
// Two stages of one and two blocks: 7200 and 14400 bytes of state. Devices 0 and 1 are the first
// replica, 2 and 3 the second, whose first stage has the highest peak: 7200 + 10000 + 1000.
TEST(PeakMemory, IsThatOfTheFullestGpu) {
  Plan plan;
  plan.stages = {{blocks(1)}, {blocks(2)}};
  const auto rising_to = [](std::int64_t n) {
    return std::vector<MemoryPoint>{{Time{0}, Bytes{0}}, {Time{1}, Bytes{n}}, {Time{2}, Bytes{0}}};
  };
  const Job job = job_with(0);
  EXPECT_EQ(peak_memory(job, plan, {rising_to(100), rising_to(300)}), Bytes{14400 + 300 + 1000});
  EXPECT_EQ(
      peak_memory(job, plan, {rising_to(100), rising_to(300), rising_to(10000), rising_to(300)}),
      Bytes{7200 + 10000 + 1000});
}

}  // namespace
}  // namespace mllmsim
