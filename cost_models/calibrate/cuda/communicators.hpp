// Groups of GPUs that communicate, by NCCL; without it only peer copies inside a node.
//
// One process drives all GPUs of a node with a thread for each, so that launches do not queue
// behind each other. Groups take the first GPUs of the first nodes. Nodes meet in files: node 0
// leaves an ncclUniqueId in FILE.<group>, the others wait for it.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "cost_models/calibrate/backend.hpp"
#include "cost_models/calibrate/cuda/cuda.hpp"

namespace mllmsim::calibrate::cuda {

// Work that all local ranks of a group run together: seconds per repetition.
class GroupWork {
 public:
  virtual ~GroupWork() = default;
  virtual std::vector<double> run(int repetitions) = 0;  // empty on a node outside the group
  // Queues repetitions everywhere and returns; `first_done` is recorded after the first on rank 0.
  virtual void start(int repetitions, Event& first_done) = 0;
  virtual void wait() = 0;
};

class Communicators {
 public:
  Communicators(int devices, Rendezvous rendezvous);
  ~Communicators();
  Communicators(const Communicators&) = delete;
  Communicators& operator=(const Communicators&) = delete;

  std::unique_ptr<GroupWork> collective(const costs::Collective& collective);
  std::unique_ptr<GroupWork> message(const P2pTask& task);  // from rank 0 to rank 1
  double agree(double value);                               // node 0's, on all nodes
  static std::string version();

 private:
  class Group;
  std::shared_ptr<Group> group(const costs::GroupShape& shape);

  int devices_;
  Rendezvous rendezvous_;
  std::map<costs::GroupShape, std::shared_ptr<Group>> groups_;
};

}  // namespace mllmsim::calibrate::cuda
