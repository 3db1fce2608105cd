// The seam between what is measured (plan, statistics, files, progress: the same everywhere) and
// the machine it is measured on.
#pragma once

#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "cost_models/calibrate/task.hpp"

namespace mllmsim::calibrate {

// A task with its inputs in place.
class Prepared {
 public:
  virtual ~Prepared() = default;
  // Repeats the task and returns seconds per repetition: one figure for each where repetitions are
  // timed apart (bursts, with caches flushed between them), or one average of all where they run
  // back to back (sustained, collectives, launches). For an OverlapTask the figure is the slowdown.
  virtual std::vector<double> run(int repetitions) = 0;
};

// The header of the raw file. `identity` must agree for two runs to share a file.
struct Header {
  std::vector<std::pair<std::string, std::string>> identity;  // backend, gpu, driver, cuda, ...
  int clock_mhz = 0;
};

class Backend {
 public:
  virtual ~Backend() = default;
  virtual Header header() const = 0;
  virtual int devices() const = 0;  // on this node
  // Throws CannotMeasure.
  virtual std::unique_ptr<Prepared> prepare(const Task& task) = 0;
  // The value that node 0 passed, on every node: decisions that depend on time must be the same
  // everywhere, or a collective would wait for ever.
  virtual double agree(double value) { return value; }
};

// This task does not fit this machine (memory, head dimension): the run goes on without it.
class CannotMeasure : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// There is no such machine here: no GPU, no driver, or built without CUDA. Exit 4.
class NoDevice : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// Several nodes meet in a file all of them see.
struct Rendezvous {
  std::string file;
  int nodes = 1;
  int node_rank = 0;
};

// devices: how many to use at most; 0 for all there are.
std::unique_ptr<Backend> make_host_backend(int devices);
std::unique_ptr<Backend> make_cuda_backend(int devices, const Rendezvous& rendezvous);

}  // namespace mllmsim::calibrate
