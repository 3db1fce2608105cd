#include <fmt/core.h>
#include <nccl.h>

#include <algorithm>
#include <barrier>
#include <cstring>
#include <exception>
#include <thread>

#include "cost_models/calibrate/cuda/communicators.hpp"
#include "cost_models/calibrate/rendezvous.hpp"

namespace mllmsim::calibrate::cuda {
namespace {

void check_nccl(ncclResult_t result, const char* what) {
  if (result != ncclSuccess)
    throw EnvironmentError(fmt::format("{}: {}", what, ncclGetErrorString(result)));
}

// One thread per local rank, each on its device; the first failure is thrown here.
template <class Body>
void on_each_rank(int ranks, const Body& body) {
  std::vector<std::exception_ptr> failures(static_cast<std::size_t>(ranks));
  {
    std::vector<std::jthread> threads;
    for (int rank = 0; rank < ranks; ++rank)
      threads.emplace_back([&, rank] {
        try {
          check_cuda(cudaSetDevice(rank), "cudaSetDevice");
          body(rank);
        } catch (...) {
          failures[static_cast<std::size_t>(rank)] = std::current_exception();
        }
      });
  }
  for (const std::exception_ptr& failure : failures)
    if (failure) std::rethrow_exception(failure);
}

std::string name_of(const costs::GroupShape& shape) {
  return fmt::format("n{}r{}", shape.nodes, shape.ranks);
}

}  // namespace

// The communicators of a group's ranks on this node; none if this node is outside.
class Communicators::Group {
 public:
  Group(const costs::GroupShape& group_shape, const Rendezvous& rendezvous) : shape(group_shape) {
    ncclUniqueId id{};
    if (rendezvous.node_rank == 0) check_nccl(ncclGetUniqueId(&id), "ncclGetUniqueId");
    if (shape.nodes > 1) {
      const std::string bytes = exchange(rendezvous, name_of(shape), {id.internal, sizeof id});
      if (bytes.size() != sizeof id) throw EnvironmentError("rendezvous file is incomplete");
      std::memcpy(&id, bytes.data(), sizeof id);
    }
    if (rendezvous.node_rank >= shape.nodes) return;
    const int local = shape.ranks_per_node();
    first_rank = rendezvous.node_rank * local;
    comms.resize(static_cast<std::size_t>(local));
    check_nccl(ncclGroupStart(), "ncclGroupStart");
    for (int i = 0; i < local; ++i) {
      check_cuda(cudaSetDevice(i), "cudaSetDevice");
      check_nccl(
          ncclCommInitRank(&comms[static_cast<std::size_t>(i)], shape.ranks, id, first_rank + i),
          "ncclCommInitRank");
    }
    check_nccl(ncclGroupEnd(), "ncclGroupEnd");
    check_cuda(cudaSetDevice(0), "cudaSetDevice");
  }
  ~Group() {
    for (ncclComm_t comm : comms) ncclCommDestroy(comm);
  }
  Group(const Group&) = delete;
  Group& operator=(const Group&) = delete;

  int local() const { return static_cast<int>(comms.size()); }

  const costs::GroupShape shape;
  int first_rank = 0;
  std::vector<ncclComm_t> comms;
};

namespace {

using Launch = std::function<ncclResult_t(const void* in, void* out, int rank, ncclComm_t comm,
                                          cudaStream_t stream)>;

// G is Communicators::Group, which is private there.
template <class G>
class NcclWork : public GroupWork {
 public:
  NcclWork(std::shared_ptr<G> group, std::int64_t bytes, Launch launch)
      : group_(std::move(group)), launch_(std::move(launch)) {
    ranks_.resize(static_cast<std::size_t>(group_->local()));
    on_each_rank(group_->local(), [&](int i) {
      Rank& rank = at(i);
      rank.in = random_buffer<bf16>(bytes / 2 + 1);
      rank.out = device_buffer<bf16>(bytes / 2 + 1);
      rank.stream = std::make_unique<Stream>(true);
      check_cuda(cudaDeviceSynchronize(), "fill");
    });
  }
  ~NcclWork() override {
    for (int i = 0; i < group_->local(); ++i) {
      cudaSetDevice(i);
      at(i) = {};
    }
    cudaSetDevice(0);
  }

  std::vector<double> run(int repetitions) override {
    if (group_->local() == 0) return {};
    std::vector<double> seconds(ranks_.size());
    std::barrier together(group_->local());
    on_each_rank(group_->local(), [&](int i) {
      Event start, stop;
      together.arrive_and_wait();
      launch(i);  // aligns the ranks, so that the first repetition does not wait for a thread
      start.record(*at(i).stream);
      for (int n = 0; n < repetitions; ++n) launch(i);
      stop.record(*at(i).stream);
      at(i).stream->wait();
      seconds[static_cast<std::size_t>(i)] = stop.seconds_since(start);
    });
    return {*std::max_element(seconds.begin(), seconds.end()) / repetitions};
  }

  void start(int repetitions, Event& first_done) override {
    on_each_rank(group_->local(), [&](int i) {
      for (int n = 0; n < repetitions; ++n) {
        launch(i);
        if (i == 0 && n == 0) first_done.record(*at(i).stream);
      }
    });
  }
  void wait() override {
    on_each_rank(group_->local(), [&](int i) { at(i).stream->wait(); });
  }

 private:
  struct Rank {
    Buffer<bf16> in, out;
    std::unique_ptr<Stream> stream;
  };
  Rank& at(int i) { return ranks_[static_cast<std::size_t>(i)]; }
  void launch(int i) {
    const auto index = static_cast<std::size_t>(i);
    check_nccl(launch_(at(i).in.get(), at(i).out.get(), group_->first_rank + i,
                       group_->comms[index], *at(i).stream),
               "NCCL");
  }

  std::shared_ptr<G> group_;
  Launch launch_;
  std::vector<Rank> ranks_;
};

// Counts in bf16 elements: the whole buffer, and one rank's part of it.
Launch launch_of(const costs::Collective& c) {
  const auto whole = static_cast<std::size_t>(std::max<std::int64_t>(1, c.bytes.value / 2));
  const std::size_t part =
      std::max<std::size_t>(1, whole / static_cast<std::size_t>(c.group.ranks));
  switch (c.op) {
    case costs::CollectiveOp::all_gather:
      return [part](const void* in, void* out, int, ncclComm_t comm, cudaStream_t stream) {
        return ncclAllGather(in, out, part, ncclBfloat16, comm, stream);
      };
    case costs::CollectiveOp::reduce_scatter:
      return [part](const void* in, void* out, int, ncclComm_t comm, cudaStream_t stream) {
        return ncclReduceScatter(in, out, part, ncclBfloat16, ncclSum, comm, stream);
      };
    case costs::CollectiveOp::all_reduce:
      return [whole](const void* in, void* out, int, ncclComm_t comm, cudaStream_t stream) {
        return ncclAllReduce(in, out, whole, ncclBfloat16, ncclSum, comm, stream);
      };
    case costs::CollectiveOp::all_to_all:
      return [part, ranks = c.group.ranks](const void* in, void* out, int, ncclComm_t comm,
                                           cudaStream_t stream) {
        ncclResult_t result = ncclGroupStart();
        for (int peer = 0; peer < ranks && result == ncclSuccess; ++peer) {
          const std::size_t at = static_cast<std::size_t>(peer) * part * 2;
          result =
              ncclSend(static_cast<const char*>(in) + at, part, ncclBfloat16, peer, comm, stream);
          if (result == ncclSuccess)
            result = ncclRecv(static_cast<char*>(out) + at, part, ncclBfloat16, peer, comm, stream);
        }
        const ncclResult_t ended = ncclGroupEnd();
        return result == ncclSuccess ? ended : result;
      };
  }
  throw InternalError("unknown collective");
}

}  // namespace

Communicators::Communicators(int devices, Rendezvous rendezvous)
    : devices_(devices), rendezvous_(std::move(rendezvous)) {}

Communicators::~Communicators() {
  for (const auto& [shape, group] : groups_)
    if (shape.nodes > 1) clean_up(rendezvous_, name_of(shape));
}

std::shared_ptr<Communicators::Group> Communicators::group(const costs::GroupShape& shape) {
  if (shape.ranks_per_node() > devices_) throw CannotMeasure("more ranks than GPUs");
  std::shared_ptr<Group>& found = groups_[shape];
  if (!found) found = std::make_shared<Group>(shape, rendezvous_);
  return found;
}

std::unique_ptr<GroupWork> Communicators::collective(const costs::Collective& c) {
  // Room for a part of at least one element for every rank.
  const std::int64_t bytes = std::max<std::int64_t>(c.bytes.value, 2 * c.group.ranks);
  return std::make_unique<NcclWork<Group>>(group(c.group), bytes, launch_of(c));
}

std::unique_ptr<GroupWork> Communicators::message(const P2pTask& t) {
  const auto count = static_cast<std::size_t>(t.bytes);
  return std::make_unique<NcclWork<Group>>(
      group({2, t.same_node ? 1 : 2, 1}), t.bytes,
      [count](const void* in, void* out, int rank, ncclComm_t comm, cudaStream_t stream) {
        return rank == 0 ? ncclSend(in, count, ncclInt8, 1, comm, stream)
                         : ncclRecv(out, count, ncclInt8, 0, comm, stream);
      });
}

double Communicators::agree(double value) {
  if (rendezvous_.nodes == 1) return value;
  const std::shared_ptr<Group> everyone = group({rendezvous_.nodes, rendezvous_.nodes, 1});
  const auto shared = device_buffer<double>(1);
  check_cuda(cudaMemcpy(shared.get(), &value, sizeof value, cudaMemcpyHostToDevice), "agree");
  check_nccl(
      ncclBroadcast(shared.get(), shared.get(), 1, ncclFloat64, 0, everyone->comms[0], nullptr),
      "ncclBroadcast");
  check_cuda(cudaMemcpy(&value, shared.get(), sizeof value, cudaMemcpyDeviceToHost), "agree");
  return value;
}

std::string Communicators::version() {
  int version = 0;
  check_nccl(ncclGetVersion(&version), "ncclGetVersion");
  return fmt::format("{}.{}.{}", version / 10000, version / 100 % 100, version % 100);
}

}  // namespace mllmsim::calibrate::cuda
