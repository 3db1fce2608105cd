#include "sim/account/group_accounts.hpp"

#include <algorithm>

#include "sim/account/back_to_back.hpp"
#include "sim/account/gap_claims.hpp"
#include "sim/base/errors.hpp"

namespace mllmsim {
namespace {

constexpr std::int64_t kNoCollective = -1;

// The last kernel of a chain.
struct ChainEnd {
  Time end{};
  std::int64_t collective = kNoCollective;  // its number, if it is one
  bool host = false;                        // the CPU prepares a pass
};

}  // namespace

class GroupAccounts::Device {
 public:
  // ends: by group, see ends_.
  Device(std::uint32_t chains, std::vector<std::int64_t>& ends) : chains_(chains), ends_(&ends) {}

  Ran run(TaskId task, GroupId group, const KernelGroups& groups, KnownRows& rows, Time ready,
          const Timeline& timeline, GapClaims& claims) {
    Ran ran{kNever, {}, {}, {}};
    task_ = task;
    ready_ = ready;
    for (const KernelPiece& piece : groups.pieces(group)) {
      ChainEnd chain = chains_[piece.chain];
      Time first = kNever;
      const std::span<const Kernel> kernels = groups.of(piece.kernels);
      const BackToBack* rest = rows.find(piece.kernels);
      for (std::size_t i = 0; i < kernels.size(); ++i) {
        const Kernel& k = kernels[i];
        const Time start = k.tp ? collective(k, chain) : compute(k, chain, timeline, claims);
        if (first == kNever) first = start;
        ready_ = Time{};
        task_ = {};
        if (!rest || i + 1 != rest->from || tp_free_ > chain.end) continue;
        run_back_to_back(*rest, chain);
        i = rest->to - 1;
      }
      chains_[piece.chain] = chain;
      if (ran.start == kNever) ran.start = first;
      ran.end = chain.end;
      if (piece.memory.start != 0 || piece.memory.end != 0) {
        memory_.add(first, chain.end, piece.memory.start, piece.memory.end, piece.backward,
                    piece.beside);
        memory_left_ += piece.memory.start + piece.memory.end;
      }
      (*ends_)[group.value] = chain.collective;
    }
    ran.compute_free = compute_free_;
    ran.latest = std::max(compute_free_, tp_free_);
    return ran;
  }

  // A task of its own, after all groups.
  void run_task(TaskId id, const Task& task, const Timeline& timeline, GapClaims& claims) {
    const Time start = timeline.start[id.value];
    if (task.kind == TaskKind::host) return;
    if (start > at_) {
      claims.begin(at_, start);
      claim_before(id, timeline, claims);
      explain(claims, BubbleKind::pp_cooldown);
    }
    busy_ += task.duration - task.communication;
    bubbles_[BubbleKind::tp] += task.communication;
    at_ = timeline.end[id.value];
    computed_ = true;
  }

  void end(Time span, GapClaims& claims) {
    if (span > at_) {
      claims.begin(at_, span);
      explain(claims, BubbleKind::pp_cooldown);
    }
    check(busy_ + bubbles_.total() == span, "busy + bubbles differ from the step");
    check(memory_left_ == 0, "activations were not freed");
  }

  Time busy() const { return busy_; }
  const Bubbles& bubbles() const { return bubbles_; }
  Bytes peak() { return mllmsim::peak(memory_.profile()); }
  const StreamDigest& compute_digest() const { return compute_digest_; }
  const StreamDigest& tp_digest() const { return tp_digest_; }

 private:
  static constexpr Time kNever{-1};

  // A kernel on the tp stream that may still explain why compute idles. Of tasks: those that it
  // waited for are theirs.
  struct Collective {
    Time start, end;
    TaskId task, host_task;
  };

  Time collective(const Kernel& k, ChainEnd& chain) {
    const Time start = std::max({tp_free_, chain.end, ready_});
    const Time end = start + k.duration;
    // What ended before the compute stream idled explains nothing any more.
    if (!collectives_.empty() && collectives_.back().end <= at_) {
      forgotten_ += static_cast<std::int64_t>(collectives_.size());
      collectives_.clear();
    }
    collectives_.push_back({start, end, task_, chain.host ? host_task_ : TaskId{}});
    tp_free_ = end;
    tp_digest_.add(k.kind, start, end);
    chain = {end, forgotten_ + static_cast<std::int64_t>(collectives_.size()) - 1, false};
    return start;
  }

  Time compute(const Kernel& k, ChainEnd& chain, const Timeline& timeline, GapClaims& claims) {
    const Time start = std::max({compute_free_, chain.end, ready_});
    const Time end = start + k.duration;
    compute_free_ = end;
    compute_digest_.add(k.kind, start, end);
    if (k.kind == TaskKind::host) {
      host_task_ = host_before_ = task_;
      host_after_ = chain.collective;
      host_end_ = end;
    } else {
      if (start > at_) idle(start, chain, timeline, claims);
      if (k.waits)
        bubbles_[BubbleKind::tp] += k.duration;
      else
        busy_ += k.duration;
      at_ = end;
      computed_ = true;
      host_before_ = {};
    }
    chain = {end, kNoCollective, k.kind == TaskKind::host};
    return start;
  }

  void run_back_to_back(const BackToBack& row, ChainEnd& chain) {
    const Time from = chain.end;
    compute_digest_.add(row.compute_digest, from);
    tp_digest_.add(row.tp_digest, from);
    busy_ += row.busy;
    bubbles_[BubbleKind::tp] += row.tp;
    if (row.tp_end > Time{}) tp_free_ = from + row.tp_end;
    chain = {from + row.total, kNoCollective, false};
    compute_free_ = at_ = chain.end;
  }

  // The compute stream waited from at_ to `start` for a kernel after `chain`.
  void idle(Time start, const ChainEnd& chain, const Timeline& timeline, GapClaims& claims) {
    if (!task_ && !host_before_ && only_collectives(start, chain.collective)) return;
    claims.begin(at_, start);
    // In the order of dependencies between tasks: of equal claims the first counts.
    claim_collectives(chain.collective, timeline, claims);
    if (task_) claim_before(task_, timeline, claims);
    if (host_before_ && host_end_ > at_) {
      claim_before(host_before_, timeline, claims);
      claim_collectives(host_after_, timeline, claims);
    }
    explain(claims, BubbleKind::pp_other);
  }

  // Nearly always a kernel waits for collectives of its device alone.
  bool only_collectives(Time start, std::int64_t number) {
    Time explained{};
    for (; number >= forgotten_; --number) {
      const Collective& c = collectives_[static_cast<std::size_t>(number - forgotten_)];
      if (c.end <= at_) break;
      if (c.task || c.host_task) return false;
      explained += std::min(start, c.end) - std::max(at_, c.start);
    }
    bubbles_[BubbleKind::tp] += explained;
    bubbles_[place(BubbleKind::pp_other)] += start - at_ - explained;
    return true;
  }

  void claim_before(TaskId task, const Timeline& timeline, GapClaims& claims) {
    claims.add_before(task, timeline, [&](GroupId group) {
      claim_collectives((*ends_)[group.value], timeline, claims);
    });
  }

  void claim_collectives(std::int64_t number, const Timeline& timeline, GapClaims& claims) {
    for (; number >= forgotten_; --number) {
      const Collective c = collectives_[static_cast<std::size_t>(number - forgotten_)];
      if (c.end <= claims.from()) break;
      claims.add(BubbleKind::tp, c.start, c.end);
      if (c.host_task) claim_before(c.host_task, timeline, claims);
      if (c.task) claim_before(c.task, timeline, claims);
    }
  }

  BubbleKind place(BubbleKind later) const { return computed_ ? later : BubbleKind::pp_warmup; }
  void explain(GapClaims& claims, BubbleKind later) {
    claims.lay_out([&](Time) { return place(later); },
                   [&](const Bubble& b) { bubbles_[b.kind] += b.end - b.start; });
  }

  Time compute_free_{}, tp_free_{};
  std::vector<ChainEnd> chains_;
  // Of the group that runs, until its first kernel has started.
  Time ready_{};
  TaskId task_;
  // Accounts.
  Time at_{};  // the compute stream idles since
  bool computed_ = false;
  Time busy_{};
  Bubbles bubbles_;
  StreamDigest compute_digest_, tp_digest_;
  MemoryChanges memory_;
  std::int64_t memory_left_ = 0;
  std::vector<Collective> collectives_;  // numbered from forgotten_
  std::int64_t forgotten_ = 0;
  std::vector<std::int64_t>* ends_;  // the collective that a group ends in, if it does
  // The latest preparation of a pass, by the group it begins; if it is the last of the stream.
  TaskId host_task_, host_before_;
  std::int64_t host_after_ = kNoCollective;  // which it waited for
  Time host_end_{};
};

StepAccounts accounts_of(const Program& program, const Timeline& timeline,
                         const std::vector<DeviceTime>& times,
                         const std::vector<std::vector<MemoryPoint>>& memory) {
  StepAccounts out{timeline.span, event_digest(program, timeline), {}, {}, {}};
  for (const DeviceTime& t : times) {
    out.busy.push_back(t.busy);
    out.bubbles.push_back(t.bubbles);
  }
  for (const auto& profile : memory) out.peaks.push_back(peak(profile));
  return out;
}

GroupAccounts::GroupAccounts(const Program& program, const KernelGroups& groups)
    : program_(program),
      groups_(groups),
      claims_(std::make_unique<GapClaims>(program)),
      rows_(std::make_unique<KnownRows>(groups)),
      ends_(groups.groups(), kNoCollective),
      devices_(program.devices(), Device(groups.chains(), ends_)) {}

GroupAccounts::~GroupAccounts() = default;

GroupRunner::Ran GroupAccounts::run(TaskId task, Time ready, const Timeline& timeline) {
  const Task& t = program_.tasks()[task.value];
  return devices_[Program::device_of(t.stream).value].run(task, t.group, groups_, *rows_, ready,
                                                          timeline, *claims_);
}

StepAccounts GroupAccounts::finish(const Timeline& timeline) {
  std::vector<StreamDigest> digests(devices_.size() * kStreamKinds);
  for (std::uint32_t d = 0; d < devices_.size(); ++d) {
    digests[Program::stream({d}, StreamKind::compute).value] = devices_[d].compute_digest();
    digests[Program::stream({d}, StreamKind::tp).value] = devices_[d].tp_digest();
  }
  for (std::uint32_t t = 0; t < program_.tasks().size(); ++t) {
    const Task& task = program_.tasks()[t];
    if (task.group) continue;
    check(task.memory_at_start == 0 && task.memory_at_end == 0, "kernels alone hold memory");
    digests[task.stream.value].add(task.kind, timeline.start[t], timeline.end[t], task.bytes);
    if (Program::kind_of(task.stream) == StreamKind::compute)
      devices_[Program::device_of(task.stream).value].run_task({t}, task, timeline, *claims_);
  }
  StepAccounts out;
  out.span = timeline.span;
  out.digest = event_digest(digests);
  for (Device& device : devices_) {
    device.end(timeline.span, *claims_);
    out.busy.push_back(device.busy());
    out.bubbles.push_back(device.bubbles());
    out.peaks.push_back(device.peak());
  }
  return out;
}

}  // namespace mllmsim
