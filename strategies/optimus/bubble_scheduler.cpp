#include "strategies/optimus/bubble_scheduler.hpp"

#include <algorithm>
#include <optional>

#include "sim/base/errors.hpp"

namespace mllmsim::optimus {
namespace {

// How far the kernels of one pass have been placed into gaps; only ever moves on.
class Cursor {
 public:
  Cursor(const std::vector<Gap>& gaps, Time from) : gaps_(gaps), free_(from) {
    gap_ = static_cast<std::size_t>(
        std::partition_point(gaps.begin(), gaps.end(), [&](const Gap& g) { return g.to <= from; }) -
        gaps.begin());
  }
  // The first place from `earliest` on where a kernel fits whole. `slowed`: its time in tp bubbles.
  Gap place(Time earliest, Time duration, Time slowed) {
    for (;; ++gap_) {
      const Gap& g = gaps_[gap_];
      const Time start = std::max({g.from, free_, earliest});
      const Time end = start + (g.tp_bubble ? slowed : duration);
      if (end > g.to) continue;
      free_ = end;
      return {start, end, g.tp_bubble};
    }
  }

 private:
  const std::vector<Gap>& gaps_;
  std::size_t gap_ = 0;
  Time free_;
};

// The kernels of one pass on one rank.
struct PlacedPass {
  int rank = 0;
  EncoderPass pass;
  std::vector<Gap> kernels;
};

struct PlacedWave {
  std::vector<PlacedPass> passes;
  Time end{};  // of its last kernel
};

struct RankGaps {
  std::vector<Gap> compute, tp;
};

class Scheduler {
 public:
  Scheduler(EncoderWork& work, const LlmTimeline& llm, Placement placement, std::size_t most_waves)
      : work_(work), llm_(llm), coarse_(placement == Placement::coarse), most_waves_(most_waves) {}

  BubbleSchedule run(bool with_order) {
    with_order_ = with_order;
    const Time early = earliest_start();
    Time end = llm_.span;
    if (work_.backward) end = std::max(end, place_backwards());
    BubbleSchedule out{waves_, {}, early + end};
    if (!with_order) return out;
    for (int rank = 0; rank < static_cast<int>(llm_.ranks.size()); ++rank)
      out.ranks.push_back(order_of(rank));
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
    const Time precision = llm_.span / (with_order_ ? 2000 : 400);
    for (Time tried{}; enough - too_little > precision; tried = (enough + too_little) / 2)
      (place_forwards(tried) <= Time{} ? enough : too_little) = tried;
    if (place_forwards(enough) <= Time{}) return enough;
    before_all_ = true;
    check(place_forwards(early) <= Time{}, "a placement found once is found again");
    return early;
  }

  const RankTimeline& rank(int r) const { return llm_.ranks[static_cast<std::size_t>(r)]; }

  // A wave through the stages of a group from `earliest` on. Waves of a group overtake each other
  // nowhere: a kernel starts no earlier than the same one of the wave before.
  PlacedWave place_wave(std::uint32_t group, std::uint32_t wave, std::uint32_t first,
                        std::uint32_t count, bool forward, Time earliest,
                        const PlacedWave* before) {
    PlacedWave out;
    const int pp = work_.plan.pp;
    for (int i = 0; i < pp; ++i) {
      const int stage = forward ? i : pp - 1 - i;
      if (!forward && !work_.stage_backward[static_cast<std::size_t>(stage)]) break;
      if (i > 0) earliest += work_.between_stages(forward ? stage - 1 : stage);
      const int r = work_.plan.rank_of(group, stage);
      const RankGaps& gaps = gaps_[static_cast<std::size_t>(r)];
      const std::vector<Gap>* ahead =
          before ? &before->passes[static_cast<std::size_t>(i)].kernels : nullptr;
      if (ahead) earliest = std::max(earliest, ahead->front().from);
      Cursor compute(gaps.compute, earliest), tp(gaps.tp, earliest);
      PlacedPass& pass = out.passes.emplace_back(PlacedPass{r, {forward, wave}, {}});
      const auto& kernels = work_.kernels(first, count, stage, forward);
      pass.kernels.reserve(kernels.size());
      for (const EncoderWork::Kernel& k : kernels) {
        if (ahead) {
          const std::size_t same = pass.kernels.size() + 1 == kernels.size()
                                       ? ahead->size() - 1
                                       : std::min(pass.kernels.size(), ahead->size() - 1);
          earliest = std::max(earliest, (*ahead)[same].from);
        }
        if (forward)
          earliest =
              std::max(earliest, work_.gathered[static_cast<std::size_t>(stage)][k.layer] - early_);
        pass.kernels.push_back(k.tp ? tp.place(earliest, k.time, k.time)
                                    : compute.place(earliest, k.time, k.slowed));
        earliest = pass.kernels.back().to;
      }
    }
    out.end = earliest;
    return out;
  }

  // Returns by how much the latest wave comes too late for the LLM (or, coarse, for its rank).
  Time place_forwards(Time early) {
    early_ = early;
    gaps_.clear();
    for (const RankTimeline& r : llm_.ranks)
      gaps_.push_back(before_all_ ? RankGaps{{{-kAlways, kAlways}}, {{-kAlways, kAlways}}}
                                  : RankGaps{r.compute, r.tp});
    const auto n = static_cast<std::uint32_t>(work_.llm.micro_batches.front().size());
    const auto groups = static_cast<std::uint32_t>(work_.groups);
    const auto lanes = static_cast<std::uint32_t>(work_.lanes);
    struct Candidate {
      std::uint32_t first = 0;
      PlacedWave placed;
    };
    std::vector<const PlacedWave*> before(groups, nullptr);
    std::vector<std::optional<Candidate>> next(groups);
    std::vector<std::size_t> taken(groups, 0);
    waves_.clear();
    forwards_.clear();
    forwards_.reserve(n);
    Time late = -kAlways;
    for (std::uint32_t first = 0; first < n; first += lanes) {
      const std::uint32_t count = std::min(lanes, n - first);
      const auto wave = static_cast<std::uint32_t>(waves_.size());
      std::optional<std::uint32_t> best;
      for (std::uint32_t g = 0; g < groups; ++g) {
        if (taken[g] >= most_waves_) continue;
        // Waves of equal work need no second look.
        if (!next[g] || !same_work(next[g]->first, first, count)) {
          next[g].emplace(Candidate{first, {}});
          next[g]->placed = place_wave(g, wave, first, count, true, -early, before[g]);
        }
        if (!best || arrival(g, *next[g]) < arrival(*best, *next[*best])) best = g;
      }
      check(best.has_value(), "too few waves a group");
      Candidate& c = *next[*best];
      const Time arrives = arrival(*best, c);
      EncoderWave& added = waves_.emplace_back(EncoderWave{*best, {}});
      for (std::uint32_t i = first; i < first + count; ++i) {
        added.micro_batches.push_back(i);
        late = std::max(late, arrives - llm_.forward_start[i]);
      }
      for (PlacedPass& p : c.placed.passes) {
        p.pass.wave = wave;
        if (before_all_) late = std::max(late, p.kernels.back().to - rank(p.rank).first_start);
      }
      take(c.placed);
      forwards_.push_back(std::move(c.placed));
      before[*best] = &forwards_.back();
      next[*best].reset();
      ++taken[*best];
    }
    return late;
  }

  Time place_backwards() {
    if (coarse_)
      for (std::size_t r = 0; r < gaps_.size(); ++r)
        gaps_[r] = {{{llm_.ranks[r].last_end, kAlways}}, {{llm_.ranks[r].last_end, kAlways}}};
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
      backwards_.push_back(place_wave(wave.group, w, wave.micro_batches.front(),
                                      static_cast<std::uint32_t>(wave.micro_batches.size()), false,
                                      ready + work_.to_llm(wave.group), before[wave.group]));
      take(backwards_.back());
      before[wave.group] = &backwards_.back();
      end = std::max(end, backwards_.back().end);
    }
    for (int r = 0; r < static_cast<int>(gaps_.size()); ++r) end = std::max(end, reduced(r));
    return end;
  }

  // When the last gradients of a rank's encoder stage are reduced, bucket after bucket.
  Time reduced(int r) {
    const auto stage = static_cast<std::size_t>(r % work_.plan.pp);
    std::vector<Time> last(work_.gathered[stage].size(), -kAlways);  // backward through each layer
    for (const PlacedWave& wave : backwards_)
      for (const PlacedPass& p : wave.passes) {
        if (p.rank != r) continue;
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
    gaps_.clear();
    for (const RankTimeline& r : llm_.ranks) gaps_.push_back({r.compute, r.tp});
    for (const PlacedWave& wave : forwards_) take(wave);
  }

  // What a wave takes is no gap any more.
  void take(const PlacedWave& wave) {
    for (const PlacedPass& p : wave.passes) {
      const auto& kernels = kernels_of(p);
      std::vector<Gap> compute, tp;
      for (std::size_t k = 0; k < kernels.size(); ++k)
        if (kernels[k].time > Time{}) (kernels[k].tp ? tp : compute).push_back(p.kernels[k]);
      RankGaps& gaps = gaps_[static_cast<std::size_t>(p.rank)];
      take(gaps.compute, compute);
      take(gaps.tp, tp);
    }
  }
  // Only the gaps between the first and the last kernel change.
  void take(std::vector<Gap>& gaps, const std::vector<Gap>& taken) {
    if (taken.empty()) return;
    const auto first = std::partition_point(
        gaps.begin(), gaps.end(), [&](const Gap& g) { return g.to <= taken.front().from; });
    auto end = first;
    left_.clear();
    auto next = taken.begin();
    for (; next != taken.end(); ++end) {
      Gap g = *end;
      for (; next != taken.end() && next->from < g.to; ++next) {
        if (next->from > g.from) left_.push_back({g.from, next->from, g.tp_bubble});
        g.from = next->to;
      }
      if (g.to > g.from) left_.push_back(g);
    }
    const auto before = static_cast<std::size_t>(end - first);
    const std::size_t kept = std::min(before, left_.size());
    const auto at = std::copy_n(left_.begin(), kept, first);
    if (kept < before)
      gaps.erase(at, end);
    else
      gaps.insert(at, left_.begin() + static_cast<std::ptrdiff_t>(kept), left_.end());
  }

  // Merges a rank's encoder kernels into the LLM's by their times.
  EncoderRank order_of(int r) const {
    struct Kernel {
      Time start;
      std::uint32_t pass;
    };
    EncoderRank out;
    std::vector<Kernel> kernels;
    for (const auto* waves : {&forwards_, &backwards_})
      for (const PlacedWave& wave : *waves)
        for (const PlacedPass& p : wave.passes) {
          if (p.rank != r) continue;
          for (const Gap& k : p.kernels)
            kernels.push_back({k.from, static_cast<std::uint32_t>(out.passes.size())});
          out.passes.push_back(p.pass);
        }
    std::stable_sort(kernels.begin(), kernels.end(),
                     [](const Kernel& a, const Kernel& b) { return a.start < b.start; });
    const RankTimeline& llm = rank(r);
    auto at = llm.kernels.begin();
    for (const Kernel& k : kernels) {
      while (at != llm.kernels.end() && at->start < k.start) ++at;
      const bool after_all = at == llm.kernels.end();
      const EncoderSlot slot{k.pass, after_all ? llm.passes : at->pass, after_all ? 0 : at->kernel,
                             1};
      if (!out.slots.empty() && out.slots.back().pass == slot.pass &&
          out.slots.back().llm_pass == slot.llm_pass &&
          out.slots.back().llm_kernel == slot.llm_kernel)
        ++out.slots.back().kernels;
      else
        out.slots.push_back(slot);
    }
    return out;
  }

  template <class Candidate>
  Time arrival(std::uint32_t group, const Candidate& c) const {
    return c.placed.end + work_.to_llm(group);
  }
  bool same_work(std::uint32_t a, std::uint32_t b, std::uint32_t count) const {
    const auto& batches = work_.llm.micro_batches.front();
    if (a + count > batches.size() ||
        (b + count == batches.size() && count < static_cast<std::uint32_t>(work_.lanes)))
      return a == b;
    for (std::uint32_t i = 0; i < count; ++i)
      if (batches[a + i].encoders != batches[b + i].encoders) return false;
    return true;
  }
  const std::vector<EncoderWork::Kernel>& kernels_of(const PlacedPass& p) {
    const EncoderWave& wave = waves_[p.pass.wave];
    return work_.kernels(wave.micro_batches.front(),
                         static_cast<std::uint32_t>(wave.micro_batches.size()),
                         p.rank % work_.plan.pp, p.pass.forward);
  }

  EncoderWork& work_;
  const LlmTimeline& llm_;
  bool coarse_, before_all_ = true, with_order_ = false;
  std::size_t most_waves_;
  std::vector<RankGaps> gaps_;
  std::vector<Gap> left_;
  Time early_{};
  std::vector<EncoderWave> waves_;
  std::vector<PlacedWave> forwards_, backwards_;
};

}  // namespace

BubbleSchedule schedule_encoders(EncoderWork& work, const LlmTimeline& llm, Placement placement,
                                 std::size_t most_waves, bool with_order) {
  return Scheduler(work, llm, placement, most_waves).run(with_order);
}

}  // namespace mllmsim::optimus
