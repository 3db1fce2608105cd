#include "strategies/lower/tied_embedding.hpp"

namespace mllmsim::lower {
namespace {

struct Ends {
  bool embedding = false, head = false;
};

Ends ends_of(const Job& job, const std::vector<Chunk>& chunks) {
  Ends ends;
  for (const Chunk& chunk : chunks)
    for (const PlannedLayer& p : chunk) {
      ends.head |= p.layer.kind == LayerKind::head;
      ends.embedding |= p.layer.kind == LayerKind::embedding && is_llm(job.model, p.layer);
    }
  return ends;
}

}  // namespace

std::int64_t copied_embedding(const Job& job, const std::vector<Chunk>& chunks) {
  const Llm& llm = job.model.llm;
  if (!llm.tie_word_embeddings) return 0;
  const Ends ends = ends_of(job, chunks);
  const std::int64_t tp = job.parallelism.tensor_model_parallel_size;
  return ends.head && !ends.embedding ? llm.vocab_size * llm.blocks.hidden_size / tp : 0;
}

void reduce_tied_embedding(StepBuilder& step, Communication& communication) {
  const Job& job = step.job();
  if (!job.model.llm.tie_word_embeddings || !job.model.llm.trained) return;
  int first = -1, last = -1;
  std::int64_t parameters = 0;
  for (int rank = 0; rank < step.ranks(); ++rank) {
    const std::vector<Chunk>& chunks = step.plan().stages[static_cast<std::size_t>(rank)];
    if (ends_of(job, chunks).embedding) first = rank;
    if (const std::int64_t copy = copied_embedding(job, chunks)) {
      last = rank;
      parameters = copy;
    }
  }
  if (first < 0 || last < 0) return;
  const Parallelism& p = job.parallelism;
  std::vector<std::vector<int>> groups;
  for (int tp = 0; tp < p.tensor_model_parallel_size; ++tp)
    for (int dp = 0; dp < p.data_parallel_size; ++dp)
      for (int cp = 0; cp < p.context_parallel_size; ++cp)
        groups.push_back({p.rank(tp, dp, first, cp), p.rank(tp, dp, last, cp)});
  // Both stages meet first: until then the one that is done waits for the pipeline, not for another
  // replica.
  Program& program = step.program();
  Task meet;
  meet.kind = TaskKind::sync;
  meet.label = program.label("tied embedding");
  for (int replica = 0; replica < step.replicas(); ++replica) {
    meet.transfer = program.add_transfer();
    for (const int rank : {first, last}) {
      meet.stream = Program::stream(step.device(replica, rank), StreamKind::dp);
      const TaskId met = program.add(meet);
      for (std::uint32_t c = 0; c < step.chunks(); ++c)
        program.add_dependency(
            step.tasks_of(replica, rank, {false, step.micro_batches() - 1, c}).last(), met);
    }
  }
  communication.add_collective(groups, {first, last}, costs::CollectiveOp::all_reduce,
                               job.software.precision.grad_bytes_per_parameter * parameters);
}

}  // namespace mllmsim::lower
