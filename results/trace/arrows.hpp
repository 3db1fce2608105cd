// Which receive belongs to which send.
//
// The spans of a run do not number their transfers, and need not: both ends of one are on matching
// streams of one replica (what pp_send_next sends arrives on pp_recv_prev), start and end together,
// and carry the same micro-batch and bytes. A micro-batch, or a wave of encoders, which bears the
// number of its first one, crosses one boundary at a time in each direction, so nothing else does.
// Pipeline sends also know their receiver: the next or the previous stage, round the ring with
// virtual stages. Sends of encoders may go to any stage.
#pragma once

#include <vector>

#include "results/charts/lanes.hpp"

namespace mllmsim::results {

struct Arrow {
  const charts::Lane *from, *to;
  const SpanRow *sent, *received;
};

// By lane of the sender, then by time; those with an end that is not shown are left out. `stages`:
// of the pipeline.
std::vector<Arrow> arrows_of(const charts::View& view, int stages);

}  // namespace mllmsim::results
