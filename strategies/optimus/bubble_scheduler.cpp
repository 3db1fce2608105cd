#include "strategies/optimus/bubble_scheduler.hpp"

#include <algorithm>
#include <optional>

#include "sim/base/errors.hpp"
#include "strategies/optimus/kernel_order.hpp"

namespace mllmsim::optimus {
namespace {

struct PlacedWave {
  std::vector<PlacedPass> passes;
  Time end{};  // of its last kernel
};

struct RankGaps {
  GapList compute, tp;
};

// A stream that is free from `from` on.
GapList free_from(Time from) { return GapList({{from, kAlways}}); }

// What a group of ranks has, and how it would take the next wave.
struct Group {
  const PlacedWave* before = nullptr;  // its last wave
  std::size_t taken = 0;
  std::uint32_t wave = 0;  // that `next` was placed for
  std::optional<PlacedWave> next;
};

class Scheduler {
 public:
  Scheduler(const EncoderWork& work, const LlmTimeline& llm, Placement placement,
            std::size_t most_waves)
      : work_(work), llm_(llm), coarse_(placement == Placement::coarse), most_waves_(most_waves) {}

  BubbleSchedule run(bool with_order) {
    with_order_ = with_order;
    const Time early = earliest_start();
    Time end = llm_.span;
    if (work_.has_backward.back()) end = std::max(end, place_backwards());
    BubbleSchedule out{waves_, {}, early + end};
    if (!with_order) return out;
    for (int rank = 0; rank < static_cast<int>(llm_.ranks.size()); ++rank)
      out.ranks.push_back(order_of(timeline(rank), passes_of(rank)));
    return out;
  }

 private:
  // How much earlier than the LLM alone the step has to start, with the forwards placed for it.
  Time earliest_start() {
    // Before all LLM kernels nothing is in the way: every round comes as much earlier as the one
    // before came late.
    before_all_ = true;
    Time early{};
    for (int round = 0;; ++round) {
      const Time late = place_forwards(early);
      if (late <= Time{}) break;
      check(round < 64, "encoder forwards never arrive in time");
      early += late;
    }
    if (coarse_) return early;
    // With all gaps open less is enough; how much less has no formula.
    before_all_ = false;
    Time enough = early, too_little{-1};
    const Time precision = std::max(Time{1}, llm_.span / (with_order_ ? 2000 : 400));
    for (Time tried{}; enough - too_little > precision; tried = (enough + too_little) / 2)
      (place_forwards(tried) <= Time{} ? enough : too_little) = tried;
    if (place_forwards(enough) <= Time{}) return enough;
    before_all_ = true;
    check(place_forwards(early) <= Time{}, "a placement found once is found again");
    return early;
  }

  // Returns by how much the latest wave comes too late for the LLM (or, before all, for its rank).
  Time place_forwards(Time early) {
    early_ = early;
    if (before_all_)
      gaps_.assign(llm_.ranks.size(), {free_from(-kAlways), free_from(-kAlways)});
    else
      gaps_ = open_gaps();
    std::vector<Group> groups(static_cast<std::size_t>(work_.groups));
    waves_.clear();
    forwards_.clear();
    forwards_.reserve(work_.waves());
    Time late = -kAlways;
    for (std::uint32_t wave = 0; wave < work_.waves(); ++wave) {
      const std::uint32_t g = first_to_finish(groups, wave);
      late = std::max(late, assign(wave, g, std::move(*groups[g].next)));
      groups[g] = {&forwards_.back(), groups[g].taken + 1, 0, {}};
    }
    return late;
  }

  // The group that gets a wave to the LLM first; the first of equals.
  std::uint32_t first_to_finish(std::vector<Group>& groups, std::uint32_t wave) const {
    std::optional<std::uint32_t> best;
    Time least{};
    for (std::uint32_t g = 0; g < groups.size(); ++g) {
      Group& group = groups[g];
      if (group.taken >= most_waves_) continue;
      // Waves of equal work need no second look.
      if (!group.next || work_.kinds[group.wave] != work_.kinds[wave]) {
        group.wave = wave;
        group.next = place_wave(g, {true, wave}, -early_, group.before);
      }
      const Time arrives = group.next->end + work_.to_llm[g];
      if (best && arrives >= least) continue;
      best = g;
      least = arrives;
    }
    check(best.has_value(), "too few waves per group");
    return *best;
  }

  // Gives a placed wave to its group. Returns by how much it comes too late.
  Time assign(std::uint32_t wave, std::uint32_t group, PlacedWave placed) {
    Time late = -kAlways;
    EncoderWave& added = waves_.emplace_back(EncoderWave{group, {}});
    const std::uint32_t first = wave * work_.lanes;
    for (std::uint32_t i = first; i < std::min(first + work_.lanes, work_.micro_batches); ++i) {
      added.micro_batches.push_back(i);
      late = std::max(late, placed.end + work_.to_llm[group] - llm_.forward_start[i]);
    }
    for (PlacedPass& p : placed.passes) {
      p.pass.wave = wave;
      if (before_all_) late = std::max(late, p.kernels.back().to - timeline(p.rank).first_start);
    }
    occupy(placed);
    forwards_.push_back(std::move(placed));
    return late;
  }

  // Returns when the last gradients are reduced.
  Time place_backwards() {
    if (coarse_)
      for (std::size_t r = 0; r < gaps_.size(); ++r)
        gaps_[r] = {free_from(llm_.ranks[r].last_end), free_from(llm_.ranks[r].last_end)};
    else if (before_all_)
      open_all_gaps();
    std::vector<const PlacedWave*> before(static_cast<std::size_t>(work_.groups), nullptr);
    backwards_.clear();
    backwards_.reserve(waves_.size());
    Time end{};
    for (std::uint32_t w = 0; w < waves_.size(); ++w) {
      const EncoderWave& wave = waves_[w];
      Time ready = forwards_[w].end;
      for (std::uint32_t i : wave.micro_batches) ready = std::max(ready, llm_.backward_end[i]);
      backwards_.push_back(
          place_wave(wave.group, {false, w}, ready + work_.to_llm[wave.group], before[wave.group]));
      occupy(backwards_.back());
      before[wave.group] = &backwards_.back();
      end = std::max(end, backwards_.back().end);
    }
    for (int r = 0; r < static_cast<int>(gaps_.size()); ++r) end = std::max(end, reduced(r));
    return end;
  }

  // A wave through the stages of a group from `earliest` on. Waves of a group overtake each other
  // nowhere: a kernel starts no earlier than the same one of the wave before.
  PlacedWave place_wave(std::uint32_t group, EncoderPass pass, Time earliest,
                        const PlacedWave* before) const {
    PlacedWave out;
    for (int i = 0; i < work_.pp; ++i) {
      const int stage = pass.forward ? i : work_.pp - 1 - i;
      if (!pass.forward && !work_.has_backward[static_cast<std::size_t>(stage)]) break;
      if (i > 0) earliest += work_.hops[static_cast<std::size_t>(pass.forward ? stage - 1 : stage)];
      const int rank = static_cast<int>(group) * work_.pp + stage;
      const std::vector<Gap>* ahead =
          before ? &before->passes[static_cast<std::size_t>(i)].kernels : nullptr;
      out.passes.push_back({rank, pass, place_pass(rank, stage, pass, earliest, ahead)});
      earliest = out.passes.back().kernels.back().to;
    }
    out.end = earliest;
    return out;
  }

  // The kernels of a wave on one stage; `ahead`: those of the wave before it.
  std::vector<Gap> place_pass(int rank, int stage, EncoderPass pass, Time earliest,
                              const std::vector<Gap>* ahead) const {
    if (ahead) earliest = std::max(earliest, ahead->front().from);
    const RankGaps& gaps = gaps_[static_cast<std::size_t>(rank)];
    GapCursor compute(gaps.compute, earliest), tp(gaps.tp, earliest);
    const auto& kernels = work_.kernels(pass.wave, stage, pass.forward);
    const std::vector<Time>& gathered = work_.gathered[static_cast<std::size_t>(stage)];
    std::vector<Gap> placed;
    placed.reserve(kernels.size());
    for (const EncoderWork::Kernel& k : kernels) {
      if (ahead) {
        const bool last = placed.size() + 1 == kernels.size();
        const std::size_t same =
            last ? ahead->size() - 1 : std::min(placed.size(), ahead->size() - 1);
        earliest = std::max(earliest, (*ahead)[same].from);
      }
      if (pass.forward) earliest = std::max(earliest, gathered[k.layer] - early_);
      placed.push_back(k.tp ? tp.place(earliest, k.time, k.time)
                            : compute.place(earliest, k.time, k.slowed));
      earliest = placed.back().to;
    }
    return placed;
  }

  // When the last gradients of a rank's encoder stage are reduced, bucket after bucket.
  Time reduced(int rank) const {
    const auto stage = static_cast<std::size_t>(rank % work_.pp);
    std::vector<Time> last(work_.gathered[stage].size(), -kAlways);  // backward through each layer
    for (const PlacedWave& wave : backwards_)
      for (const PlacedPass& p : wave.passes) {
        if (p.rank != rank) continue;
        const auto& kernels = kernels_of(p);
        for (std::size_t k = 0; k < kernels.size(); ++k)
          last[kernels[k].layer] = std::max(last[kernels[k].layer], p.kernels[k].to);
      }
    Time at = -kAlways;
    for (const EncoderWork::Reduction& bucket : work_.reductions[stage]) {
      for (std::uint32_t layer = bucket.from; layer < bucket.to; ++layer)
        at = std::max(at, last[layer]);
      at += bucket.time;
    }
    return at;
  }

  void open_all_gaps() {
    gaps_ = open_gaps();
    for (const PlacedWave& wave : forwards_) occupy(wave);
  }

  // The LLM's, before anything is placed.
  const std::vector<RankGaps>& open_gaps() {
    if (open_gaps_.empty())
      for (const RankTimeline& r : llm_.ranks)
        open_gaps_.push_back({GapList(r.compute), GapList(r.tp)});
    return open_gaps_;
  }

  // What a wave takes is no gap any more.
  void occupy(const PlacedWave& wave) {
    for (const PlacedPass& p : wave.passes) {
      const auto& kernels = kernels_of(p);
      std::vector<Gap> compute, tp;
      for (std::size_t k = 0; k < kernels.size(); ++k)
        if (kernels[k].time > Time{}) (kernels[k].tp ? tp : compute).push_back(p.kernels[k]);
      RankGaps& gaps = gaps_[static_cast<std::size_t>(p.rank)];
      gaps.compute.take(compute);
      gaps.tp.take(tp);
    }
  }

  const RankTimeline& timeline(int rank) const {
    return llm_.ranks[static_cast<std::size_t>(rank)];
  }
  const std::vector<EncoderWork::Kernel>& kernels_of(const PlacedPass& p) const {
    return work_.kernels(p.pass.wave, p.rank % work_.pp, p.pass.forward);
  }
  // Forwards first, each in the order of its waves.
  std::vector<const PlacedPass*> passes_of(int rank) const {
    std::vector<const PlacedPass*> out;
    for (const auto* waves : {&forwards_, &backwards_})
      for (const PlacedWave& wave : *waves)
        for (const PlacedPass& p : wave.passes)
          if (p.rank == rank) out.push_back(&p);
    return out;
  }

  const EncoderWork& work_;
  const LlmTimeline& llm_;
  bool coarse_, before_all_ = true, with_order_ = false;
  std::size_t most_waves_;
  std::vector<RankGaps> gaps_, open_gaps_;
  Time early_{};
  std::vector<EncoderWave> waves_;
  std::vector<PlacedWave> forwards_, backwards_;
};

}  // namespace

BubbleSchedule schedule_encoders(const EncoderWork& work, const LlmTimeline& llm,
                                 Placement placement, std::size_t most_waves, bool with_order) {
  return Scheduler(work, llm, placement, most_waves).run(with_order);
}

}  // namespace mllmsim::optimus
