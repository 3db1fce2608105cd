// A whole pass over the job's data set: which samples form the micro-batches of each step and
// replica, and what the model sees of them.
//
// With packs a micro-batch is one pack, whatever micro_batch_size says, and a step has as many
// micro-batches as it would have otherwise; or, with data.equal_batch, the number that comes
// nearest to global_batch_size samples in the mean:
//
//   micro-batches per replica = round(global_batch_size / (dp * samples per pack))
//
// in multiples of pp if the schedule is interleaved.
#pragma once

#include "strategies/data/batching.hpp"
#include "strategies/job/job.hpp"

namespace mllmsim::plans {

// The job's data set as its batching, or another, groups it.
data::Batches batches_of(const Job& job, data::Batching batching);
inline data::Batches batches_of(const Job& job) { return batches_of(job, job.data.batching); }

// What an encoder and the LLM see of one micro-batch. Padded: all sequences as long as the longest.
// media: of the samples, by encoder; none: tiles.
MicroBatch micro_batch_of(const Model& model, std::span<const data::Sample> samples,
                          std::span<const data::SampleIndex> group, data::Joining joining,
                          std::span<const std::vector<data::Media>> media = {});

void make_micro_batch(const Model& model, std::span<const data::Sample> samples,
                      std::span<const data::SampleIndex> group, data::Joining joining,
                      std::span<const std::vector<data::Media>> media, MicroBatch& mb);

// [replica][position] of one step.
std::vector<std::vector<MicroBatch>> micro_batches_of(const Job& job, const data::Batches& pass,
                                                      std::int64_t step);
// Of one replica, in memory that earlier ones had.
void make_micro_batches(const Job& job, const data::Batches& pass, std::int64_t step,
                        std::size_t replica, std::vector<MicroBatch>& out);

// Steps to simulate: all of them, or job.data.steps spread evenly over the pass.
std::vector<std::int64_t> chosen_steps(const Job& job, const data::Batches& pass);

// Image tokens that each of so many sequences sees by cross-attention, on average; 0 without it.
std::int64_t cross_keys(const Model& model, const MicroBatch& mb, std::int64_t sequences);

// A micro-batch with the most tiles and tokens that any of the pass has: none needs more memory.
MicroBatch largest_micro_batch(const Job& job, const data::Batches& pass);

// A micro-batch of mean size, for plans made before the data are seen.
MicroBatch mean_micro_batch(const Job& job, const data::Batches& pass);

}  // namespace mllmsim::plans
