// How long the passes of a pipeline take, from the times of its model stages alone: a search looks
// at thousands of cuts, too many to simulate.
//
// A turn is what a rank does between two exchanges: one pass, or a forward and a backward. Turns
// and transfers wait for each other as in strategies/lower/pipeline.hpp, so that
//   end(turn) = time of its passes + the latest of  end(turn before on its rank),
//                                                   end(turn that it receives from) + transfer,
// and where passes and transfers take turns a transfer also waits for both its ends, and the
// sender's next turn for the transfer. Left out: links shared with others, data-parallel
// communication, the optimizer.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/kernel/schedule.hpp"
#include "strategies/job/job.hpp"

namespace mllmsim::plans {

class TurnGraph {
 public:
  struct Costs {
    double start = 0;     // before each pass
    double transfer = 0;  // of a message between neighbours
  };
  // `micro_batches` of the job's pipeline, whose sizes and software decide the order of passes.
  TurnGraph(const Job& job, ScheduleKind kind, std::int64_t micro_batches, Costs costs);

  // Forward and backward of each model stage.
  struct Stage {
    double forward = 0, backward = 0;
  };
  double span(const std::vector<Stage>& stages) const;

 private:
  struct Edge {
    std::uint32_t from = 0;
    bool transfer = false;
  };
  struct Turn {
    std::int32_t forward = -1, backward = -1;  // model stages
    std::uint32_t edges_end = 0;
  };
  Costs costs_;
  std::vector<Turn> turns_;  // each behind all it waits for
  std::vector<Edge> edges_;  // of the turns, in their order
  mutable std::vector<double> ends_;
};

}  // namespace mllmsim::plans
