// A whole pass over the job's data set: which samples form the micro-batches of each step and
// replica, and what the model sees of them.
//
// With packs a micro-batch is one pack, whatever micro_batch_size says, and a step has as many
// micro-batches as it would have otherwise.
#pragma once

#include "strategies/data/batching.hpp"
#include "strategies/job.hpp"

namespace mllmsim {

// The job's data set as its batching, or another, groups it.
Batches batches_of(const Job& job, Batching batching);
inline Batches batches_of(const Job& job) { return batches_of(job, job.data.batching); }

// What an encoder and the LLM see of one micro-batch. Padded: all sequences as long as the longest.
MicroBatch micro_batch_of(const Model& model, std::span<const Sample> samples,
                          std::span<const SampleIndex> group, Joining joining);

// [replica][position] of one step.
std::vector<std::vector<MicroBatch>> micro_batches_of(const Job& job, const Batches& pass,
                                                      std::int64_t step);

// Steps to simulate: all of them, or job.data.steps spread evenly over the pass.
std::vector<std::int64_t> chosen_steps(const Job& job, const Batches& pass);

// A micro-batch with the most tiles and tokens that any of the pass has: none needs more memory.
MicroBatch largest_micro_batch(const Job& job, const Batches& pass);

// A micro-batch of mean size, for plans made before the data are seen.
MicroBatch mean_micro_batch(const Job& job, const Batches& pass);

}  // namespace mllmsim
