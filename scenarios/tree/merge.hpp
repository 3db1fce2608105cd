// Laying one tree over another: a run over the model it names, the command line over the run.
#pragma once

#include <string>
#include <vector>

#include "scenarios/tree/node.hpp"
#include "scenarios/tree/problems.hpp"

namespace mllmsim::scenarios {

// Tables merge key by key, at every depth; anything else in `over` replaces what is below.
Node merged(Node base, Node over);

// Applies "a.b=c" overrides to the tree of a run file, as if the user had edited the file, shallow
// keys first, so their order does not matter. Where the file has only a name, a deeper key turns it
// into a table: over `cluster = "x"`, cluster.nodes=4 gives { base = "x", nodes = 4 }. Naming
// another model or cluster keeps the run's other changes to it; naming another strategy drops the
// options of the one before; data.set replaces uniform samples, cluster.gpus the nodes and
// gradient_accumulation_steps the global batch, and the other way round. tp, pp, vpp, dp, mbs and
// gbs stand for their keys of parallelism.
void apply_overrides(Node& run, const std::vector<std::string>& overrides, Problems& problems);

// What tp, pp, vpp, dp, mbs and gbs stand for; any other key as it is.
std::string in_full(std::string key);

// The same as apply_overrides for a table of changes:
// { cluster.nodes = 4, "model.llm.hidden_size" = 1024 }.
void apply_changes(Node& run, const Node& changes, Problems& problems);

}  // namespace mllmsim::scenarios
