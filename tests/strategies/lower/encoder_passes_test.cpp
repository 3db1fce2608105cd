// Encoders beside the LLM: their kernels are where the plan's slots put them.
#include "strategies/lower/encoder_passes.hpp"

#include <gtest/gtest.h>

#include "cost_models/kernels/kernel_costs.hpp"
#include "cost_models/layers/layer_costs.hpp"
#include "tests/strategies/lower/programs.hpp"

namespace mllmsim {
using namespace lower;
namespace {

// One GPU, two micro-batches: the LLM runs F0 B0 F1 B1. The encoder's forward of micro-batch 0
// comes first; that of micro-batch 1 begins with two kernels before kernel 3 of F0, and ends after
// F0. Its backwards are after B0 and in the end.
struct Beside {
  Job job = one_gpu();
  JobCosts costs{job};
  Plan plan = plan_beside(job);
  Program program = to_program(job, plan, costs.context());
  std::vector<TaskId> compute = on_stream(program, {0}, StreamKind::compute);

  static Job one_gpu() {
    Job job = small_job();
    job.parallelism = {};
    job.parallelism.global_batch_size = 2;
    return job;
  }

  static Plan plan_beside(const Job& job) {
    Plan plan = plan_of(job, {18});
    Chunk& llm = plan.stages[0][0];
    EncoderPlan encoders;
    encoders.stages = {Chunk(llm.begin(), llm.begin() + 8)};  // embedding, 6 blocks, projector
    llm.erase(llm.begin(), llm.begin() + 8);
    encoders.waves = {{0, {0}}, {0, {1}}};
    encoders.ranks = {{{{true, 0}, {true, 1}, {false, 0}, {false, 1}},
                       {{0, 0, 0, 0}, {1, 0, 3, 2}, {1, 1, 0, 0}, {2, 2, 0, 0}, {3, 4, 0, 0}}}};
    plan.encoders = encoders;
    return plan;
  }

  std::vector<EncoderKernel> kernels(bool forward) {
    return encoder_kernels(costs.layers, plan.encoders->stages[0], {&plan.micro_batches[0][0]},
                           forward);
  }
  std::size_t llm_kernels(bool forward) {
    std::size_t n = 0;
    for (const PlannedLayer& p : plan.stages[0][0]) {
      const LayerCost& cost = costs.layers.cost(p.layer, plan.micro_batches[0][0], p.recompute);
      n += forward ? cost.forward.size() : cost.backward.size();
    }
    return n;
  }
};

// Lengths of the runs of encoder and LLM kernels on the compute stream.
TEST(EncoderPasses, KernelsAreIssuedInTheirSlots) {
  Beside b;
  std::vector<std::size_t> runs;
  bool of_encoder = false;
  for (const TaskId t : b.compute) {
    const bool encoder = b.program.text(b.program.tasks()[t.value].label).starts_with("encoder ");
    if (runs.empty() || encoder != of_encoder) runs.push_back(0);
    of_encoder = encoder;
    ++runs.back();
  }
  const std::size_t f = b.kernels(true).size(), back = b.kernels(false).size();
  const std::size_t llm_f = b.llm_kernels(true), llm_b = b.llm_kernels(false);
  EXPECT_EQ(runs, (std::vector<std::size_t>{f, 3, 2, llm_f - 3, f - 2, llm_b, back, llm_f + llm_b,
                                            back, 1}));  // the optimizer
}

// Two encoder kernels share the GPU with the LLM's collective in front of kernel 3.
TEST(EncoderPasses, KernelsInTpBubblesAreSlowed) {
  Beside b;
  const std::vector<EncoderKernel> kernels = b.kernels(true);
  const double slowdown = b.costs.context().kernels.gemm_slowdown_beside_collective();
  const auto duration = [&](std::size_t i) {
    return b.program.tasks()[b.compute[i].value].duration;
  };
  const std::size_t in_bubble = kernels.size() + 3;
  EXPECT_EQ(duration(0), kernels[0].kernel.time);
  EXPECT_EQ(duration(in_bubble), scaled(kernels[0].kernel.time, slowdown));
  EXPECT_EQ(duration(in_bubble + 1), scaled(kernels[1].kernel.time, slowdown));
}

// ... and hold that collective up in turn: for what it loses while they run, or a share of itself.
TEST(EncoderPasses, HoldUpTheCollectiveBesideThem) {
  Beside b;
  const double slowdown = b.costs.context().kernels.gemm_slowdown_beside_collective();
  Time held{}, collective{};
  for (std::size_t t = 1; t < b.program.tasks().size(); ++t) {
    const Task& task = b.program.tasks()[t];
    if (b.program.text(task.label) != "llm tp collective beside an encoder") continue;
    held += task.duration;
    for (std::size_t i = t; i-- > 0;)
      if (b.program.tasks()[i].kind == TaskKind::tp_collective) {
        collective = b.program.tasks()[i].duration;
        break;
      }
  }
  const std::vector<EncoderKernel> kernels = b.kernels(true);
  const Time beside =
      scaled(kernels[0].kernel.time, slowdown) + scaled(kernels[1].kernel.time, slowdown);
  EXPECT_EQ(held, std::min(scaled(beside, 1 - 1 / slowdown), scaled(collective, slowdown - 1)));
}

// Two kernels, of which the second is a collective, run where the last kernel of the LLM's
// embedding follows: it takes SMs from that, for as long as it runs or, as here, a share of what
// that takes.
TEST(EncoderPasses, TheirCollectivesSlowTheLlmsKernels) {
  Job job = Beside::one_gpu();
  job.parallelism.tensor_model_parallel_size = 2;
  JobCosts costs(job);
  Plan plan = Beside::plan_beside(job);
  plan.encoders->tp = 2;
  const std::vector<EncoderKernel> kernels =
      encoder_kernels(costs.layers, plan.encoders->stages[0], {&plan.micro_batches[0][0]}, true);
  std::uint32_t through = 0;  // the first collective
  while (!kernels[through].kernel.communication) ++through;
  plan.encoders->ranks[0].slots[1].kernels = through + 1;
  const Program program = to_program(job, plan, costs.context());
  const double slowdown = costs.context().kernels.gemm_slowdown_beside_collective();
  Time longer{}, next{};
  const std::vector<TaskId> on_compute = on_stream(program, {0}, StreamKind::compute);
  for (std::size_t i = 0; i + 1 < on_compute.size(); ++i) {
    const Task& task = program.tasks()[on_compute[i].value];
    if (program.text(task.label) != "llm beside a collective of an encoder") continue;
    longer += task.duration;
    next += program.tasks()[on_compute[i + 1].value].duration;
  }
  const Time share = scaled(next, slowdown - 1);
  EXPECT_LT(share, scaled(kernels[through].kernel.time, 1 - 1 / slowdown));
  EXPECT_EQ(longer, share);
}

// On the same rank nothing travels: the LLM's forward waits for the encoder's, whose backward waits
// for the LLM's.
TEST(EncoderPasses, AreJoinedToTheLlmsPassesOfTheirMicroBatch) {
  Beside b;
  const std::size_t f = b.kernels(true).size(), back = b.kernels(false).size();
  const std::size_t llm_f = b.llm_kernels(true), llm_b = b.llm_kernels(false);
  EXPECT_TRUE(joined(b.program, b.compute[f - 1], b.compute[f]));
  const std::size_t end_of_b0 = 2 * f + llm_f + llm_b - 1;
  EXPECT_TRUE(joined(b.program, b.compute[end_of_b0], b.compute[end_of_b0 + 1]));
  const std::size_t start_of_f1 = end_of_b0 + back + 1;
  EXPECT_TRUE(joined(b.program, b.compute[2 * f + llm_f - 1], b.compute[start_of_f1]));
}

}  // namespace
}  // namespace mllmsim
