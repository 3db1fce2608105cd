// A language model that can be counted by hand, and ways to read a program made for it.
#pragma once

#include <algorithm>

#include "strategies/plans/partition.hpp"
#include "tests/strategies/small_job.hpp"

namespace mllmsim {

// Five layers: embedding, three blocks, head. Each has more than 40 million parameters:
// 32000 * 2048 = 66 million in embedding and head, 4 * 2048^2 + 2 * 2048 * 8192 = 50 in a block.
inline Job five_layers() {
  Job job = small_job();
  job.model.encoders.clear();
  job.model.llm.blocks = {.num_hidden_layers = 3,
                          .hidden_size = 2048,
                          .num_attention_heads = 16,
                          .num_key_value_heads = 16,
                          .head_dim = 128,
                          .intermediate_size = 8192,
                          .causal = true};
  job.parallelism = {};
  return job;
}

// One pipeline rank per entry of `sizes`: how many layers it holds.
inline Plan plan_of(const Job& job, const std::vector<std::size_t>& sizes) {
  return plans::plan_from(job, plans::stages_from(job, layers_of(job.model), sizes));
}

inline std::vector<TaskId> on_stream(const Program& program, DeviceId device, StreamKind kind) {
  std::vector<TaskId> out;
  for (std::uint32_t t = 0; t < program.tasks().size(); ++t)
    if (program.tasks()[t].stream == Program::stream(device, kind)) out.push_back({t});
  return out;
}

// One letter per task of a stream, in order: Forward, Backward, Gather, Reduction, Sync, Optimizer.
inline std::string letters(const Program& program, const std::vector<TaskId>& tasks) {
  std::string out;
  for (const TaskId t : tasks) switch (program.tasks()[t.value].kind) {
      case TaskKind::forward:
        out += 'F';
        break;
      case TaskKind::backward:
        out += 'B';
        break;
      case TaskKind::dp_all_gather:
        out += 'G';
        break;
      case TaskKind::dp_reduce_scatter:
        out += 'R';
        break;
      case TaskKind::sync:
        out += 'S';
        break;
      case TaskKind::optimizer:
        out += 'O';
        break;
      default:
        out += '?';
    }
  return out;
}

inline bool joined(const Program& program, TaskId before, TaskId after) {
  return std::ranges::any_of(program.dependencies(), [&](const Program::Edge& e) {
    return e.before == before && e.after == after;
  });
}

// What a task waits for, besides its stream.
inline std::vector<TaskId> before(const Program& program, TaskId task) {
  std::vector<TaskId> out;
  for (const Program::Edge& e : program.dependencies())
    if (e.after == task) out.push_back(e.before);
  return out;
}

// zero_stage 3: a layer's pass, the gather it waits for and, of a backward, the scatter of its
// gradients.
struct ShardedLayer {
  Time gather, computing, slowed, scatter;
  bool backward = false;

  Time work() const { return computing + slowed; }
};

// Of the first device, in the order of their passes.
inline std::vector<ShardedLayer> sharded_layers(const Program& program) {
  std::vector<ShardedLayer> out;
  const std::vector<TaskId> dp = on_stream(program, {0}, StreamKind::dp);
  for (const TaskId id : on_stream(program, {0}, StreamKind::compute)) {
    const Task& task = program.tasks()[id.value];
    if (task.kind == TaskKind::optimizer) break;
    for (const TaskId gather : dp)
      if (joined(program, gather, id))
        out.push_back({program.tasks()[gather.value].duration, {}, {}, {}, false});
    ShardedLayer& layer = out.back();
    layer.backward = task.kind == TaskKind::backward;
    const bool slowed = program.text(task.label) == "slowed by dp collectives";
    (slowed ? layer.slowed : layer.computing) += task.duration;
    for (const TaskId scatter : dp)
      if (joined(program, id, scatter) &&
          program.tasks()[scatter.value].kind == TaskKind::dp_reduce_scatter)
        layer.scatter = program.tasks()[scatter.value].duration;
  }
  return out;
}

}  // namespace mllmsim
