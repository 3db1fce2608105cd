#include "strategies/plans/turn_graph.hpp"

#include <algorithm>
#include <numeric>

#include "sim/base/errors.hpp"
#include "strategies/lower/pipeline.hpp"

namespace mllmsim::plans {
namespace {

// The turns of all ranks as they are numbered before they are sorted.
class Numbered {
 public:
  Numbered(const Job& job, ScheduleKind kind, std::int64_t micro_batches)
      : ranks_(job.parallelism.pipeline_model_parallel_size),
        chunks_(job.parallelism.virtual_pipeline_stages) {
    const auto chunks = static_cast<std::uint32_t>(chunks_);
    turn_of_.resize(2 * static_cast<std::size_t>(micro_batches * chunks_ * ranks_));
    first_.push_back(0);
    for (int rank = 0; rank < ranks_; ++rank) {
      std::vector<Pass> passes =
          schedule(kind, ranks_, chunks_, micro_batches, rank,
                   job.parallelism.microbatch_group_size_per_virtual_pipeline_stage);
      std::vector<std::size_t> starts(passes.size() + 1);
      std::iota(starts.begin(), starts.end(), 0);
      if (!job.software.overlap_p2p) starts = lower::turns_of(passes, chunks);
      for (std::size_t t = 0; t + 1 < starts.size(); ++t) {
        for (std::size_t i = starts[t]; i < starts[t + 1]; ++i)
          turn_of_[index(rank, passes[i])] = turns();
        turns_.emplace_back(passes.begin() + static_cast<std::ptrdiff_t>(starts[t]),
                            passes.begin() + static_cast<std::ptrdiff_t>(starts[t + 1]));
        rank_of_.push_back(rank);
      }
      first_.push_back(turns());
    }
  }

  std::uint32_t turns() const { return static_cast<std::uint32_t>(turns_.size()); }
  const std::vector<Pass>& passes(std::uint32_t turn) const { return turns_[turn]; }
  int stage(std::uint32_t turn, const Pass& pass) const {
    return static_cast<int>(pass.chunk) * ranks_ + rank_of_[turn];
  }
  bool first(std::uint32_t turn) const { return turn == first_[rank(turn)]; }
  bool last(std::uint32_t turn) const { return turn + 1 == first_[rank(turn) + 1]; }
  // Calls f(from, to) for each transfer.
  template <class F>
  void each_transfer(F f) const {
    for (std::uint32_t turn = 0; turn < turns(); ++turn)
      for (const Pass& pass : turns_[turn]) {
        const int to = stage(turn, pass) + (pass.forward ? 1 : -1);
        if (to < 0 || to >= ranks_ * chunks_) continue;
        f(turn, turn_of_[index(to % ranks_, {pass.forward, pass.micro_batch,
                                             static_cast<std::uint32_t>(to / ranks_)})]);
      }
  }

 private:
  std::size_t rank(std::uint32_t turn) const { return static_cast<std::size_t>(rank_of_[turn]); }
  std::size_t index(int rank, const Pass& pass) const {
    const auto ranks = static_cast<std::size_t>(ranks_);
    const std::size_t stage = pass.chunk * ranks + static_cast<std::size_t>(rank);
    const std::size_t stages = ranks * static_cast<std::size_t>(chunks_);
    return (pass.micro_batch * stages + stage) * 2 + (pass.forward ? 0 : 1);
  }
  int ranks_, chunks_;
  std::vector<std::vector<Pass>> turns_;
  std::vector<int> rank_of_;
  std::vector<std::uint32_t> turn_of_;  // by pass
  std::vector<std::uint32_t> first_;    // by rank, and the number of turns
};

}  // namespace

TurnGraph::TurnGraph(const Job& job, ScheduleKind kind, std::int64_t micro_batches, Costs costs)
    : costs_(costs) {
  const Numbered numbered(job, kind, micro_batches);
  std::vector<std::vector<Edge>> before(numbered.turns());
  for (std::uint32_t turn = 0; turn < numbered.turns(); ++turn)
    if (!numbered.first(turn)) before[turn].push_back({turn - 1, false});
  numbered.each_transfer([&](std::uint32_t from, std::uint32_t to) {
    before[to].push_back({from, true});
    if (job.software.overlap_p2p) return;
    if (!numbered.first(to)) before[to].push_back({to - 1, true});
    if (numbered.last(from)) return;
    before[from + 1].push_back({from, true});
    if (!numbered.first(to)) before[from + 1].push_back({to - 1, true});
  });
  // Turns behind what they wait for.
  std::vector<std::vector<std::uint32_t>> after(numbered.turns());
  std::vector<std::size_t> waits(numbered.turns());
  std::vector<std::uint32_t> order;
  for (std::uint32_t turn = 0; turn < numbered.turns(); ++turn) {
    waits[turn] = before[turn].size();
    if (waits[turn] == 0) order.push_back(turn);
    for (const Edge& edge : before[turn]) after[edge.from].push_back(turn);
  }
  for (std::size_t i = 0; i < order.size(); ++i)
    for (const std::uint32_t next : after[order[i]])
      if (--waits[next] == 0) order.push_back(next);
  check(order.size() == numbered.turns(), "no turn waits for itself");
  std::vector<std::uint32_t> place(order.size());
  for (std::size_t i = 0; i < order.size(); ++i) place[order[i]] = static_cast<std::uint32_t>(i);
  for (const std::uint32_t turn : order) {
    Turn sorted;
    for (const Pass& pass : numbered.passes(turn))
      (pass.forward ? sorted.forward : sorted.backward) = numbered.stage(turn, pass);
    for (const Edge& edge : before[turn]) edges_.push_back({place[edge.from], edge.transfer});
    sorted.edges_end = static_cast<std::uint32_t>(edges_.size());
    turns_.push_back(sorted);
  }
  ends_.resize(turns_.size());
}

double TurnGraph::span(const std::vector<Stage>& stages) const {
  double span = 0;
  std::uint32_t edge = 0;
  for (std::size_t i = 0; i < turns_.size(); ++i) {
    const Turn& turn = turns_[i];
    double end = 0;
    for (; edge < turn.edges_end; ++edge)
      end =
          std::max(end, ends_[edges_[edge].from] + (edges_[edge].transfer ? costs_.transfer : 0.0));
    if (turn.forward >= 0)
      end += costs_.start + stages[static_cast<std::size_t>(turn.forward)].forward;
    if (turn.backward >= 0)
      end += costs_.start + stages[static_cast<std::size_t>(turn.backward)].backward;
    ends_[i] = end;
    span = std::max(span, end);
  }
  return span;
}

}  // namespace mllmsim::plans
