#include "strategies/optimus/bubble_scheduler.hpp"

#include <algorithm>
#include <optional>

#include "sim/errors.hpp"

namespace mllmsim {
namespace {

// How far a rank's kernels have been placed into its gaps; only ever moves on.
struct Cursor {
  std::size_t gap = 0;
  Time free{};
};

Time place(const std::vector<Gap>& gaps, Cursor& at, Time earliest, Time duration) {
  for (;; ++at.gap) {
    const Gap& g = gaps[at.gap];
    const Time start = std::max({g.from, at.free, earliest});
    if (start + duration > g.to) continue;
    at.free = start + duration;
    return start;
  }
}

struct RankCursor {
  Cursor compute, tp;
};

// The kernels of one pass on one rank.
struct PlacedPass {
  int rank = 0;
  EncoderPass pass;
  std::vector<Time> starts;
};

struct PlacedWave {
  std::vector<PlacedPass> passes;
  Time end{};  // of its last kernel
};

struct RankGaps {
  std::vector<Gap> compute, tp;
};

std::vector<Gap> without(const std::vector<Gap>& gaps, std::vector<Gap> taken) {
  std::sort(taken.begin(), taken.end(), [](const Gap& a, const Gap& b) { return a.from < b.from; });
  std::vector<Gap> left;
  auto next = taken.begin();
  for (Gap g : gaps) {
    for (; next != taken.end() && next->from < g.to; ++next) {
      if (next->from > g.from) left.push_back({g.from, next->from});
      g.from = next->to;
    }
    if (g.to > g.from) left.push_back(g);
  }
  return left;
}

class Scheduler {
 public:
  Scheduler(EncoderWork& work, const LlmTimeline& llm, Placement placement, std::size_t most_waves)
      : work_(work), llm_(llm), coarse_(placement == Placement::coarse), most_waves_(most_waves) {}

  BubbleSchedule run() {
    // Every round starts the step as much earlier as the one before came late.
    Time early{};
    for (int round = 0;; ++round) {
      const Time late = place_forwards(early);
      if (late <= Time{}) break;
      check(round < 64, "encoder forwards never arrive in time");
      early += round < 16 ? late : 2 * late;
    }
    Time end = llm_.span;
    if (work_.backward) end = std::max(end, place_backwards());
    BubbleSchedule out{waves_, {}, early + end};
    for (int rank = 0; rank < static_cast<int>(llm_.ranks.size()); ++rank)
      out.ranks.push_back(order_of(rank));
    return out;
  }

 private:
  const RankTimeline& rank(int r) const { return llm_.ranks[static_cast<std::size_t>(r)]; }

  // A wave through the stages of a group from `earliest` on.
  PlacedWave place_wave(std::uint32_t group, std::uint32_t wave, std::uint32_t first,
                        std::uint32_t count, bool forward, Time earliest,
                        std::vector<RankCursor>& cursors) {
    PlacedWave out;
    const int pp = work_.plan.pp;
    for (int i = 0; i < pp; ++i) {
      const int stage = forward ? i : pp - 1 - i;
      if (!forward && !work_.stage_backward[static_cast<std::size_t>(stage)]) break;
      if (i > 0) earliest += work_.between_stages(forward ? stage - 1 : stage);
      const int r = work_.plan.rank_of(group, stage);
      const RankGaps& gaps = gaps_[static_cast<std::size_t>(r)];
      RankCursor& at = cursors[static_cast<std::size_t>(i)];
      PlacedPass& pass = out.passes.emplace_back(PlacedPass{r, {forward, wave}, {}});
      const auto& kernels = work_.kernels(first, count, stage, forward);
      pass.starts.reserve(kernels.size());
      for (const EncoderWork::Kernel& k : kernels) {
        const Time start = k.tp ? place(gaps.tp, at.tp, earliest, k.time)
                                : place(gaps.compute, at.compute, earliest, k.time);
        pass.starts.push_back(start);
        earliest = start + k.time;
      }
    }
    out.end = earliest;
    return out;
  }

  // Returns by how much the latest wave comes too late for the LLM (or, coarse, for its rank).
  Time place_forwards(Time early) {
    gaps_.clear();
    for (const RankTimeline& r : llm_.ranks)
      gaps_.push_back(coarse_ ? RankGaps{{{-kAlways, kAlways}}, {{-kAlways, kAlways}}}
                              : RankGaps{r.compute, r.tp});
    const auto n = static_cast<std::uint32_t>(work_.llm.micro_batches.front().size());
    const auto groups = static_cast<std::uint32_t>(work_.groups);
    const auto lanes = static_cast<std::uint32_t>(work_.lanes);
    struct Candidate {
      std::uint32_t first = 0;
      PlacedWave placed;
      std::vector<RankCursor> after;
    };
    const RankCursor start{{0, -early}, {0, -early}};
    std::vector<std::vector<RankCursor>> cursors(
        groups, std::vector<RankCursor>(static_cast<std::size_t>(work_.plan.pp), start));
    std::vector<std::optional<Candidate>> next(groups);
    std::vector<std::size_t> taken(groups, 0);
    waves_.clear();
    forwards_.clear();
    Time late = -kAlways;
    for (std::uint32_t first = 0; first < n; first += lanes) {
      const std::uint32_t count = std::min(lanes, n - first);
      const auto wave = static_cast<std::uint32_t>(waves_.size());
      std::optional<std::uint32_t> best;
      for (std::uint32_t g = 0; g < groups; ++g) {
        if (taken[g] >= most_waves_) continue;
        // Waves of equal work need no second look.
        if (!next[g] || !same_work(next[g]->first, first, count)) {
          next[g].emplace(Candidate{first, {}, cursors[g]});
          next[g]->placed =
              place_wave(g, wave, first, count, true, work_.gather - early, next[g]->after);
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
        if (coarse_) late = std::max(late, end_of(p, first, count) - rank(p.rank).first_start);
      }
      forwards_.push_back(std::move(c.placed));
      cursors[*best] = std::move(c.after);
      next[*best].reset();
      ++taken[*best];
    }
    return late;
  }

  Time place_backwards() {
    for (std::size_t r = 0; r < gaps_.size(); ++r)
      if (coarse_)
        gaps_[r] = {{{llm_.ranks[r].last_end, kAlways}}, {{llm_.ranks[r].last_end, kAlways}}};
    if (!coarse_) take_forwards_away();
    const RankCursor start{{0, -kAlways}, {0, -kAlways}};
    std::vector<std::vector<RankCursor>> cursors(
        static_cast<std::size_t>(work_.groups),
        std::vector<RankCursor>(static_cast<std::size_t>(work_.plan.pp), start));
    backwards_.clear();
    Time end{};
    for (std::uint32_t w = 0; w < waves_.size(); ++w) {
      const EncoderWave& wave = waves_[w];
      Time ready = forwards_[w].end;
      for (std::uint32_t i : wave.micro_batches) ready = std::max(ready, llm_.backward_end[i]);
      backwards_.push_back(place_wave(wave.group, w, wave.micro_batches.front(),
                                      static_cast<std::uint32_t>(wave.micro_batches.size()), false,
                                      ready + work_.to_llm(wave.group), cursors[wave.group]));
      end = std::max(end, backwards_.back().end);
    }
    return end + work_.reduce;
  }

  void take_forwards_away() {
    std::vector<RankGaps> taken(gaps_.size());
    for (std::uint32_t w = 0; w < waves_.size(); ++w)
      for (const PlacedPass& p : forwards_[w].passes) {
        const auto& kernels = kernels_of(p);
        RankGaps& t = taken[static_cast<std::size_t>(p.rank)];
        for (std::size_t k = 0; k < kernels.size(); ++k)
          if (kernels[k].time > Time{})
            (kernels[k].tp ? t.tp : t.compute)
                .push_back({p.starts[k], p.starts[k] + kernels[k].time});
      }
    for (std::size_t r = 0; r < gaps_.size(); ++r) {
      gaps_[r].compute = without(gaps_[r].compute, std::move(taken[r].compute));
      gaps_[r].tp = without(gaps_[r].tp, std::move(taken[r].tp));
    }
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
          for (Time start : p.starts)
            kernels.push_back({start, static_cast<std::uint32_t>(out.passes.size())});
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
  Time end_of(const PlacedPass& p, std::uint32_t first, std::uint32_t count) {
    return p.starts.back() +
           work_.kernels(first, count, p.rank % work_.plan.pp, p.pass.forward).back().time;
  }

  EncoderWork& work_;
  const LlmTimeline& llm_;
  bool coarse_;
  std::size_t most_waves_;
  std::vector<RankGaps> gaps_;
  std::vector<EncoderWave> waves_;
  std::vector<PlacedWave> forwards_, backwards_;
};

}  // namespace

BubbleSchedule schedule_encoders(EncoderWork& work, const LlmTimeline& llm, Placement placement,
                                 std::size_t most_waves) {
  return Scheduler(work, llm, placement, most_waves).run();
}

}  // namespace mllmsim
