// Which runs a sweep makes: every combination of the values of its axes, from a scenario's [sweep]
// table and the command line.
//
//   [sweep]
//   strategies = "all"                  # or a list of names; none: the scenario's own
//   [sweep.vary]                        # the grid
//   parallelism.pipeline_model_parallel_size = [2, 4, 8]
//   cluster.nodes = "4..64*2"           # 4, 8, ..., 64; also "1..4", "2..10+4", "100..400*2 Gb/s"
//   [[sweep.points]]                    # keys that vary together; each combined with the grid
//   parallelism.micro_batch_size = 1
//   parallelism.global_batch_size = 256
//
// Points are numbered with the points list slowest, then the grid's keys by name, strategies
// fastest; how the keys were ordered when written does not matter.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "scenarios/tree/node.hpp"

namespace mllmsim::scenarios {

struct SweepAxis {
  std::vector<std::string> keys;          // they take their values together
  std::vector<std::vector<Node>> values;  // [choice][key]
};

struct Sweep {
  std::vector<SweepAxis> axes;  // the last varies fastest

  std::size_t points() const;
  std::vector<std::string> keys() const;                        // of all axes, in their order
  std::vector<const Node*> values(std::size_t point) const;     // in the order of keys()
  std::vector<std::string> overrides(std::size_t point) const;  // "a.b=c", for read_scenario
  Node description() const;                                     // as a [sweep] table
};

// `run`: the scenario's tree. `vary` are "key=values" of the command line, where values are
// separated by commas; they come over the table's. Throws UserError with every problem, if nothing
// varies, and if there are more than ten million points.
Sweep read_sweep(const Node& run, const std::vector<std::string>& vary,
                 const std::optional<std::string>& strategies);

}  // namespace mllmsim::scenarios
