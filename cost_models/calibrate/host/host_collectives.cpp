#include "cost_models/calibrate/host/host_collectives.hpp"

#include <algorithm>
#include <barrier>
#include <chrono>
#include <thread>

namespace mllmsim::calibrate::host {
namespace {

using SteadyClock = std::chrono::steady_clock;

double seconds_since(SteadyClock::time_point start) {
  return std::chrono::duration<double>(SteadyClock::now() - start).count();
}

template <class Body>
void run_on_ranks(int ranks, const Body& body) {
  std::vector<std::jthread> threads;
  for (int rank = 0; rank < ranks; ++rank) threads.emplace_back([&body, rank] { body(rank); });
}

}  // namespace

// All three keep whole buffers on input and output: the unused parts cost memory, not time.
ThreadGroup::ThreadGroup(const costs::Collective& c) : op_(c.op), ranks_(c.group.ranks) {
  const auto ranks = static_cast<std::size_t>(ranks_);
  part_ = std::max<std::size_t>(1, static_cast<std::size_t>(c.bytes.value) / sizeof(float) / ranks);
  inputs_.assign(ranks, std::vector<float>(part_ * ranks, 1.0f));
  outputs_ = inputs_;
}

void ThreadGroup::gather(int rank, const std::vector<std::vector<float>>& from) {
  for (std::size_t peer = 0; peer < from.size(); ++peer) {
    const auto begin = from[peer].begin() + static_cast<std::ptrdiff_t>(peer * part_);
    const auto to = output(rank).begin() + static_cast<std::ptrdiff_t>(peer * part_);
    if (&*begin != &*to) std::copy_n(begin, part_, to);
  }
}

void ThreadGroup::reduce(int rank) {
  const std::size_t offset = static_cast<std::size_t>(rank) * part_;
  float* sum = output(rank).data() + offset;
  std::copy_n(inputs_[0].data() + offset, part_, sum);
  for (std::size_t peer = 1; peer < inputs_.size(); ++peer) {
    const float* other = inputs_[peer].data() + offset;
    for (std::size_t i = 0; i < part_; ++i) sum[i] += other[i];
  }
}

void ThreadGroup::exchange(int rank) {
  const auto own = static_cast<std::ptrdiff_t>(static_cast<std::size_t>(rank) * part_);
  for (std::size_t peer = 0; peer < inputs_.size(); ++peer)
    std::copy_n(inputs_[peer].begin() + own, part_,
                output(rank).begin() + static_cast<std::ptrdiff_t>(peer * part_));
}

template <class Barrier>
void ThreadGroup::once(int rank, Barrier& barrier) {
  if (op_ == costs::CollectiveOp::all_gather) {
    gather(rank, inputs_);
  } else if (op_ == costs::CollectiveOp::all_to_all) {
    exchange(rank);
  } else {
    reduce(rank);
    if (op_ == costs::CollectiveOp::all_reduce) {
      barrier.arrive_and_wait();
      gather(rank, outputs_);
    }
  }
  barrier.arrive_and_wait();
}

double ThreadGroup::run(int repetitions) {
  std::barrier barrier(ranks_);
  SteadyClock::time_point start;
  double seconds = 0;
  run_on_ranks(ranks_, [&](int rank) {
    barrier.arrive_and_wait();
    if (rank == 0) start = SteadyClock::now();
    for (int i = 0; i < repetitions; ++i) once(rank, barrier);
    if (rank == 0) seconds = seconds_since(start);
  });
  return seconds / repetitions;
}

void ThreadGroup::run_until(const std::atomic<bool>& stop) {
  std::barrier barrier(ranks_);
  bool last = false;  // written by rank 0 between two barriers, so that all see the same
  run_on_ranks(ranks_, [&](int rank) {
    do {
      once(rank, barrier);
      if (rank == 0) last = stop;
      barrier.arrive_and_wait();
    } while (!last);
  });
}

double message_seconds(std::int64_t bytes, int repetitions) {
  const std::vector<char> sent(static_cast<std::size_t>(bytes), 1);
  std::vector<char> received(sent.size());
  std::barrier barrier(2);
  double seconds = 0;
  run_on_ranks(2, [&](int rank) {
    barrier.arrive_and_wait();
    const auto start = SteadyClock::now();
    for (int i = 0; i < repetitions; ++i) {
      barrier.arrive_and_wait();
      if (rank == 1) std::copy(sent.begin(), sent.end(), received.begin());
    }
    barrier.arrive_and_wait();
    if (rank == 1) seconds = seconds_since(start);
  });
  return seconds / repetitions;
}

}  // namespace mllmsim::calibrate::host
