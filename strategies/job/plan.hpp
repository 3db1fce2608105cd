// What a strategy decides: which stage holds which layers, what each recomputes, which schedule
// runs, and how samples form micro-batches. Lowering turns it into tasks; the simulation says what
// it is worth.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "sim/kernel/schedule.hpp"
#include "sim/world/batch.hpp"
#include "sim/world/model.hpp"
#include "sim/world/parallelism.hpp"
#include "strategies/data/batching.hpp"
#include "strategies/job/chunk.hpp"
#include "strategies/job/encoder_plan.hpp"
#include "strategies/job/fact.hpp"

namespace mllmsim {

struct Plan {
  ScheduleKind schedule = ScheduleKind::one_f_one_b;
  std::int64_t micro_batch_group = 0;      // of an interleaved schedule; 0: as many as ranks
  std::vector<std::vector<Chunk>> stages;  // [pipeline rank][virtual stage]
  // [replica][index in its step]. A single replica stands for all of them when their data are
  // alike.
  std::vector<std::vector<MicroBatch>> micro_batches;
  // Encoders that are no part of `stages`. Such a plan is lowered kernel by kernel.
  std::optional<EncoderPlan> encoders;
  // With a data set: the whole pass. The micro-batches above are then those of one step at a time.
  std::shared_ptr<const data::Batches> pass;
  std::vector<Fact> facts;  // in the order they are told
};

// Of each replica in a step.
inline std::size_t micro_batches_of(const Plan& plan) {
  return plan.micro_batches.empty() ? 0 : plan.micro_batches.front().size();
}

}  // namespace mllmsim
