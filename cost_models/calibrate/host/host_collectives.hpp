// Collectives among threads: a rank is a thread with its own buffers, a link is memory.
//
// Every rank pulls: all-gather copies each peer's part, reduce-scatter sums each peer's version of
// its own part, all-reduce is the second then the first, all-to-all copies its own part from each
// peer. Ranks meet in a barrier before and after.
#pragma once

#include <atomic>
#include <vector>

#include "cost_models/calibrate/task.hpp"

namespace mllmsim::calibrate::host {

class ThreadGroup {
 public:
  explicit ThreadGroup(const costs::Collective& collective);
  // Seconds per repetition, from the first start to the last end.
  double run(int repetitions);
  // Repeats until `stop` is set.
  void run_until(const std::atomic<bool>& stop);

  // For tests: the input and output of a rank.
  std::vector<float>& input(int rank) { return inputs_[static_cast<std::size_t>(rank)]; }
  std::vector<float>& output(int rank) { return outputs_[static_cast<std::size_t>(rank)]; }

 private:
  template <class Barrier>
  void once(int rank, Barrier& barrier);
  void gather(int rank, const std::vector<std::vector<float>>& from);
  void reduce(int rank);
  void exchange(int rank);

  costs::CollectiveOp op_;
  int ranks_;
  std::size_t part_;  // floats of one rank's part
  std::vector<std::vector<float>> inputs_, outputs_;
};

// A message from one thread to another: a copy by the receiver once the sender says it is there.
double message_seconds(std::int64_t bytes, int repetitions);

}  // namespace mllmsim::calibrate::host
