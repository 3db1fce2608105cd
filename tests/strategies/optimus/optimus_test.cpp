// Encoders in bubbles: what a schedule may claim, on random small jobs and on one counted by hand.
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include "cost_models/layers/layer_costs.hpp"
#include "tests/strategies/small_job.hpp"

namespace mllmsim {
using namespace costs;
using namespace data;
using namespace lower;
namespace {

Job optimus_job(const std::string& schedule = "fine") {
  Job job = small_job();
  job.strategy = "optimus";
  job.options["schedule"] = schedule;
  return job;
}

Job random_job() {
  Job job = optimus_job();
  Parallelism& p = job.parallelism;
  p.tensor_model_parallel_size = *rc::gen::element(1, 2, 4);
  p.pipeline_model_parallel_size = *rc::gen::element(1, 2, 4);
  p.data_parallel_size = *rc::gen::element(1, 2);
  p.virtual_pipeline_stages = p.pipeline_model_parallel_size > 1 ? *rc::gen::inRange(1, 3) : 1;
  p.zero_stage = *rc::gen::element(0, 1);
  p.sequence_parallel = *rc::gen::arbitrary<bool>();
  p.global_batch_size = p.micro_batch_size * p.data_parallel_size * p.pipeline_model_parallel_size *
                        *rc::gen::inRange(1, 4);
  job.cluster.nodes = (p.world_size() + 3) / 4;
  job.recompute.encoder = *rc::gen::element(Recompute::none, Recompute::full);
  job.model.encoders[0].trained = *rc::gen::arbitrary<bool>();
  job.model.encoders[0].projector_trained = *rc::gen::arbitrary<bool>();
  if (*rc::gen::arbitrary<bool>()) {  // a second, smaller encoder
    job.model.encoders.push_back(job.model.encoders[0]);
    job.model.encoders[1].name = "audio";
    job.model.encoders[1].blocks.num_hidden_layers = 2;
    job.model.encoders[1].trained = *rc::gen::arbitrary<bool>();
  }
  return job;
}

double fact(const Plan& plan, const std::string& key) {
  for (const Fact& f : plan.facts)
    if (f.key == key) return f.number;
  ADD_FAILURE() << "no fact " << key;
  return 0;
}

double seconds(const Simulated& s) { return to_seconds(s.timeline.span).value; }

// The simulation itself checks that streams do not overlap and dependencies hold.
TEST(Optimus, IsNeverSlowerThanCoarseNorFasterThanTheLlmAlone) {
  EXPECT_TRUE(rc::check([] {
    Job job = random_job();
    const Simulated fine = simulate_job(job);
    job.options["schedule"] = std::string("coarse");
    const Simulated coarse = simulate_job(job);
    RC_ASSERT(fine.timeline.span <= coarse.timeline.span);
    RC_ASSERT(seconds(fine) >= fact(fine.plan, "bound_s"));
  }));
}

// What a micro-batch takes through all encoder stages, forward and backward.
Time encoder_time(const Job& job, const Plan& plan, JobCosts& costs, const MicroBatch& mb) {
  Parallelism own = job.parallelism;
  own.tensor_model_parallel_size = plan.encoders->tp;
  LayerCosts encoders(job.model, own, job.software, *costs.kernels, job.cluster);
  Time sum{};
  for (const Chunk& stage : plan.encoders->stages)
    for (const PlannedLayer& p : stage) {
      const LayerCost& c = encoders.cost(p.layer, mb, p.recompute);
      sum += totals(c.forward).time + totals(c.recompute).time + totals(c.backward).time;
    }
  return sum;
}

// What the encoders' kernels take in a simulated step, transfers aside.
Time encoder_tasks(const Simulated& s) {
  Time sum{};
  for (const Task& t : s.program.tasks())
    if (s.program.text(t.label).starts_with("encoder ") && t.kind != TaskKind::pp_send &&
        t.kind != TaskKind::pp_recv)
      sum += t.duration;
  return sum;
}

// Every micro-batch goes through every encoder stage once, forward and (if anything is trained)
// backward, and takes as long as its kernels do, or as they do beside a collective.
TEST(Optimus, DoesTheEncoderWorkThatItPlanned) {
  EXPECT_TRUE(rc::check([] {
    Job job = random_job();
    use_defaults(job);
    JobCosts costs(job);
    const Plan plan = make_plan(job, costs.context());
    const Simulated s = simulate_plan(job, plan, costs.context());
    std::vector<int> seen(plan.micro_batches.front().size(), 0);
    for (const EncoderWave& w : plan.encoders->waves)
      for (std::uint32_t i : w.micro_batches) ++seen[i];
    RC_ASSERT(std::all_of(seen.begin(), seen.end(), [](int n) { return n == 1; }));

    const Time planned = encoder_time(job, plan, costs, plan.micro_batches.front().front()) *
                         static_cast<std::int64_t>(plan.encoders->waves.size());
    const Time done = encoder_tasks(s);
    RC_ASSERT(done >= planned);
    RC_ASSERT(to_seconds(done).value <=
              to_seconds(planned).value * costs.kernels->gemm_slowdown_beside_collective() + 1e-6);
    for (const Fact& f : plan.facts)
      if (f.key.starts_with("hidden_share")) RC_ASSERT(f.number >= 0 && f.number <= 1);
  }));
}

// The LLM's forward i waits for the wave that holds i, its backward lets the wave's backward go.
TEST(Optimus, ActivationsArriveBeforeTheLlmNeedsThem) {
  const Simulated s = simulate_job(optimus_job());
  std::vector<Time> arrived(s.plan.micro_batches.front().size()), started(arrived.size());
  for (std::size_t t = 0; t < s.program.tasks().size(); ++t) {
    const Task& task = s.program.tasks()[t];
    if (Program::kind_of(task.stream) != StreamKind::compute || task.kind != TaskKind::forward)
      continue;
    const auto i = static_cast<std::size_t>(task.micro_batch);
    const bool encoder = s.program.text(task.label).starts_with("encoder ");
    if (encoder) arrived[i] = std::max(arrived[i], s.timeline.end[t]);
    if (!encoder && task.chunk == 0 && Program::device_of(task.stream).value == 0 &&
        started[i] == Time{})
      started[i] = s.timeline.start[t];
  }
  for (const EncoderWave& w : s.plan.encoders->waves)
    for (std::uint32_t i : w.micro_batches) EXPECT_GE(started[i], arrived[w.micro_batches.front()]);
}

// A frozen encoder with a frozen projector has nothing to send back.
TEST(Optimus, FrozenEncodersOnlyGoForward) {
  Job job = optimus_job();
  job.model.encoders[0].trained = job.model.encoders[0].projector_trained = false;
  const Simulated s = simulate_job(job);
  for (const Task& t : s.program.tasks())
    EXPECT_FALSE(t.kind == TaskKind::backward && s.program.text(t.label).starts_with("encoder "));
}

// A plan is indices: it holds for micro-batches of other lengths, kernels fewer or more. With the
// LLM's tp a wave is one micro-batch, so the encoders take the sum of what each takes, or that
// beside a collective.
TEST(Optimus, APlanHoldsForOtherMicroBatches) {
  Job job = optimus_job();
  job.options["encoder_tensor_model_parallel_size"] = std::int64_t{2};
  use_defaults(job);
  JobCosts costs(job);
  Plan plan = make_plan(job, costs.context());
  auto& batches = plan.micro_batches.front();
  for (std::size_t i = 0; i < batches.size(); ++i)
    batches[i].encoders[0].groups = {{257, static_cast<std::int64_t>(i % 3) * 4}};
  const Simulated s = simulate_plan(job, plan, costs.context());
  Time planned{};
  for (const MicroBatch& mb : batches) planned += encoder_time(job, plan, costs, mb);
  EXPECT_GE(encoder_tasks(s), planned);
  EXPECT_LE(to_seconds(encoder_tasks(s)).value,
            to_seconds(planned).value * costs.kernels->gemm_slowdown_beside_collective() + 1e-6);
}

}  // namespace
}  // namespace mllmsim
