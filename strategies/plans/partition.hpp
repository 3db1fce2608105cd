// Cutting a list of layers into contiguous parts, one per model stage.
#pragma once

#include <vector>

#include "cost_models/layers/layer_costs.hpp"
#include "strategies/job/job.hpp"
#include "strategies/job/plan.hpp"

namespace mllmsim::plans {

// The largest part has as few parameters as can be: DeepSpeed's "parameters".
std::vector<std::size_t> cut_by_parameters(const Job& job, const std::vector<Layer>& layers,
                                           std::size_t parts);

// Forward, recompute and backward of `mb`, of each layer, in seconds.
std::vector<double> layer_times(const Job& job, costs::LayerCosts& layer_costs,
                                const std::vector<Layer>& layers, const MicroBatch& mb);

// The largest part takes as little time as can be.
std::vector<std::size_t> cut_by_time(const Job& job, costs::LayerCosts& layer_costs,
                                     const std::vector<Layer>& layers, const MicroBatch& mb,
                                     std::size_t parts);

// Layers that a cut by layer count keeps together: an embedding with the block after it, a
// projector or head with the block before it. Sizes of the groups, in order; every group has
// exactly one block.
std::vector<std::size_t> block_groups(const std::vector<Layer>& layers);

// Parts that the job cuts its layers into: pipeline ranks times virtual stages.
std::size_t model_stages(const Job& job);

// Distributes layers over pipeline ranks and virtual stages by the sizes of consecutive model
// stages (model stage k is chunk k / pp of rank k % pp), with the job's recompute choices.
std::vector<std::vector<Chunk>> stages_from(const Job& job, const std::vector<Layer>& layers,
                                            const std::vector<std::size_t>& sizes);

// The plan around a partition: the schedule that the parallel sizes ask for, and the job's
// micro-batches, all alike or those of the first step of its data set.
Plan plan_from(const Job& job, std::vector<std::vector<Chunk>> stages);
// The same with a pass over the data set that is known already; none if there is no data set.
Plan plan_from(const Job& job, std::vector<std::vector<Chunk>> stages,
               std::shared_ptr<const data::Batches> pass);

// The plan of a job whose times are given: its stages hold no layers.
Plan plan_of_given_times(const Job& job);

// What recomputes how, before any per-stage count: blocks follow their module's choice, other
// layers never recompute.
Recompute recompute_of(const Job& job, const Layer& layer);

// One micro-batch of the job's uniform data.
MicroBatch uniform_micro_batch(const Job& job);

// The job's pass over its data set, or null.
std::shared_ptr<const data::Batches> pass_of(const Job& job);

// One micro-batch of mean size: what a plan is made for. `pass` may be null.
MicroBatch typical_micro_batch(const Job& job, const data::Batches* pass);

}  // namespace mllmsim::plans
