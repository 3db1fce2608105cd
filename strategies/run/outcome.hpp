// What the simulation of a job says: plain values, in memory. Where the job came from (files,
// texts, hashes) and how its outcome is shown are matters of those who ask.
//
//   GPU-days = GPUs * iteration * samples / samples per step
//   MFU      = model FLOPs / (iteration * GPUs * peak)
//
// Model FLOPs count forward and backward without recomputation, attention over the full square
// (Megatron's convention); hardware FLOPs are what the kernels execute, recomputation included.
//
// A plan that does not fit in memory is still simulated; the outcome says that it does not fit, and
// why.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "cost_models/kernels/kernel_costs.hpp"
#include "sim/account/bubbles.hpp"
#include "sim/account/critical_path.hpp"
#include "sim/account/memory.hpp"
#include "sim/base/units.hpp"
#include "sim/kernel/task_kinds.hpp"
#include "strategies/job/fact.hpp"

namespace mllmsim {

// One pipeline rank, averaged over the simulated steps and replicas; memory is the maximum.
struct StageFigures {
  int stage = 0;
  std::string layers;                     // "vit.embedding, 22 x vit.block"
  int blocks = 0, recomputed_blocks = 0;  // transformer layers; those recomputed in full
  std::int64_t parameters = 0;            // on one GPU
  // Of one micro-batch through all its chunks, tp communication included.
  Seconds forward{}, backward{};
  Seconds busy{};  // compute of a step
  std::array<Seconds, kBubbleKinds> bubbles{};
  Holdings held;  // on one GPU, all step long
  Bytes peak_activations{};
  Bytes optimizer_step{};  // copies of gradients while it runs; activations are gone by then
  // Most that forwards leave for backwards; the peak has what a backward works with on top.
  Bytes saved_activations{};
  // Of PyTorch's allocator: in tensors, and with what it keeps (strategies/step/replay.hpp).
  Bytes peak_allocated{}, peak_reserved{};
  std::int64_t allocator_retries = 0;  // allocations for which it gave back all that it kept
  Bytes peak_memory{};                 // reserved, and what is outside the allocator
  // Peak of a step as allocated, and what is outside: quantiles over steps and replicas.
  Bytes peak_memory_p50{}, peak_memory_p99{};
};

// One simulated step of one data-parallel replica.
struct StepFigures {
  std::int64_t step = 0;
  int replica = 0;
  Seconds iteration{};
  std::int64_t micro_batches = 0;
  std::int64_t samples = 0;
  std::int64_t llm_tokens = 0;
  std::int64_t tiles = 0;
  double bubble_share = 0;
};

// One task, or one bubble, of the shown step.
struct Span {
  std::int64_t step = 0;
  int replica = 0;
  int stage = 0;
  StreamKind stream = StreamKind::compute;
  SpanKind kind = SpanKind::forward;
  BubbleKind bubble{};  // if `kind` is a bubble
  std::string name;     // of the kernel or chunk; a bubble has none
  int micro_batch = -1;
  int chunk = -1;
  Time start{}, end{};
  Bytes bytes{};  // sent or received
};

// Memory of one pipeline rank from a change in the shown step on, weights and reserve included.
struct MemoryChange {
  std::int64_t step = 0;
  int replica = 0;
  int stage = 0;
  Time time{};
  Bytes bytes{};
  Bytes working{};  // of these, what a backward works with
  Bytes copies{};   // and copies of gradients at the end of the step
};

// Time that one stage spends on the critical path of the shown step, by kind.
struct PathPart {
  int stage = 0;
  PathKind kind = PathKind::forward;
  Seconds time{};
};

struct Outcome {
  bool fits = true;
  std::string reason;  // why it does not fit; empty if it does

  std::int64_t parameters = 0;    // of the whole model; 0 if times are given
  bool kernel_by_kernel = false;  // what a task is: one kernel, or one pass through a chunk
  Seconds iteration{};            // mean over simulated steps
  std::int64_t simulated_steps = 0;
  // Fingerprint of every event of the simulated steps (sim/account/event_digest.hpp), 16 digits.
  std::string event_digest;
  double samples = 0;           // of the whole run
  double samples_per_step = 0;  // mean over steps; under packing not the global batch size
  double gpu_days = 0;          // for `samples`
  double samples_per_s = 0, tokens_per_s_per_gpu = 0;
  double samples_per_micro_batch = 0;
  // Of a pass over a data set; 0 without one. See strategies/data/batching.hpp.
  std::int64_t pass_steps = 0;
  double pad_ratio = 0, dist_ratio_tiles = 0, dist_ratio_tokens = 0;
  Flops model_flops{}, hardware_flops{};  // of one step, all GPUs; useful, and executed
  double mfu = 0, hfu = 0;                // 0..1
  double mfu_6nd = 0;  // by 6 x the LLM's parameters x its tokens, padding included
  std::array<double, kBubbleKinds> bubble_shares{};  // of step time, mean over devices
  // What the kernel times rest on, by Source, as shares of their sum; all 0 if times are given.
  std::array<double, costs::kSources> source_shares{};
  Bytes peak_memory{}, gpu_memory{};

  // Wall time the strategy took to plan. For the terminal only: it differs from run to run.
  Seconds planning{};

  std::vector<Fact> facts;  // what the strategy says of its plan
  std::vector<StageFigures> stages;
  std::vector<StepFigures> steps;  // one per simulated step and replica
  // Of the first simulated step; the timeline and the path only if asked for.
  std::vector<Span> spans;
  std::vector<MemoryChange> memory;
  std::vector<PathPart> critical_path;  // by stage, then by kind; adds up to the step
};

}  // namespace mllmsim
