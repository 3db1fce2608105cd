// A Simulator remembers costs and replays of the jobs before, and nobody can tell: every outcome is
// that of simulate(), whatever came before it.
#include "strategies/run/simulate.hpp"
#include "tests/strategies/random_job.hpp"

namespace mllmsim {
namespace {

// One thing that points of a sweep differ in.
void change(Job& job) {
  Parallelism& p = job.parallelism;
  const std::int64_t per_pipeline = p.data_parallel_size * p.pipeline_model_parallel_size;
  switch (*rc::gen::inRange(0, 6)) {
    case 0:
      p.global_batch_size = p.micro_batch_size * per_pipeline * *rc::gen::inRange(1, 5);
      break;
    case 1:
      p.micro_batch_size = 3 - p.micro_batch_size;  // 1 or 2
      p.global_batch_size = p.micro_batch_size * per_pipeline * *rc::gen::inRange(1, 5);
      break;
    case 2:
      job.cluster.gpu_memory = {*rc::gen::element(1LL, 8LL, 80LL) << 30};
      break;
    case 3:
      job.software.memory.keep_stage_outputs = !job.software.memory.keep_stage_outputs;
      break;
    case 4:
      job.recompute.llm = *rc::gen::element(Recompute::none, Recompute::selective, Recompute::full);
      break;
    case 5:
      job.data.tokens_per_sample += 64;
      break;
  }
}

TEST(EveryStrategy, IsSimulatedByOneWhoRemembersAsByOneWhoDoesNot) {
  hold_for_every_strategy([&](const std::string& strategy) {
    Job job = random_job(strategy);
    job.data.set = nullptr;  // steps of a pass have costs of their own
    Simulator remembers(a100());
    for (int n = 0; n < 5; ++n) {
      RC_LOG() << text_of(job);
      std::optional<Outcome> fresh;
      try {
        fresh = simulate(job, a100(), {.timeline = false});
      } catch (const UserError&) {  // found while planning; what was remembered stays
        RC_ASSERT_THROWS_AS(remembers.simulate(job, {.timeline = false}), UserError);
        change(job);
        continue;
      }
      const Outcome known = remembers.simulate(job, {.timeline = false});
      RC_ASSERT(known.event_digest == fresh->event_digest);
      RC_ASSERT(known.iteration == fresh->iteration);
      RC_ASSERT(known.reason == fresh->reason);
      RC_ASSERT(known.model_flops == fresh->model_flops);
      RC_ASSERT(known.hardware_flops == fresh->hardware_flops);
      RC_ASSERT(known.source_shares == fresh->source_shares);
      for (std::size_t s = 0; s < fresh->stages.size(); ++s) {
        RC_ASSERT(known.stages[s].forward == fresh->stages[s].forward);
        RC_ASSERT(known.stages[s].peak_memory == fresh->stages[s].peak_memory);
        RC_ASSERT(known.stages[s].peak_reserved == fresh->stages[s].peak_reserved);
        RC_ASSERT(known.stages[s].allocator_retries == fresh->stages[s].allocator_retries);
      }
      change(job);
    }
  });
}

}  // namespace
}  // namespace mllmsim
