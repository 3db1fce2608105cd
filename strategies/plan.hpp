// What a strategy decides: which stage holds which layers, what each recomputes, which schedule
// runs, and how samples form micro-batches. Lowering turns it into tasks; the simulation says what
// it is worth.
#pragma once

#include <memory>
#include <vector>

#include "sim/batch.hpp"
#include "sim/model.hpp"
#include "sim/parallelism.hpp"
#include "sim/schedule.hpp"
#include "strategies/data/batching.hpp"
#include "strategies/fact.hpp"

namespace mllmsim {

struct PlannedLayer {
  Layer layer;
  Recompute recompute = Recompute::none;
};

// The layers one pipeline rank holds in one virtual stage. Empty if times are given instead of a
// model.
using Chunk = std::vector<PlannedLayer>;

struct Plan {
  ScheduleKind schedule = ScheduleKind::one_f_one_b;
  std::vector<std::vector<Chunk>> stages;  // [pipeline rank][virtual stage]
  // [replica][index in its step]. A single replica stands for all of them when their data are
  // alike.
  std::vector<std::vector<MicroBatch>> micro_batches;
  // With a data set: the whole pass. The micro-batches above are then those of one step at a time.
  std::shared_ptr<const Batches> pass;
  std::vector<Fact> facts;  // in the order they are told
};

}  // namespace mllmsim
