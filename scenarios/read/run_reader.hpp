// The tables of a run file that are not model, cluster or software, each into its part of a Job.
// What ties them together is checked in checks.hpp, once all are read.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "scenarios/files/input_files.hpp"
#include "scenarios/tree/node.hpp"
#include "scenarios/tree/problems.hpp"
#include "scenarios/tree/toml_reader.hpp"
#include "strategies/job/job.hpp"

namespace mllmsim::scenarios {

// As written, before anything is derived from the cluster and the model.
struct WrittenParallelism {
  Parallelism sizes;
  std::optional<int> data_parallel_size;
  std::optional<std::int64_t> layers_per_virtual_stage;
  std::optional<std::int64_t> gradient_accumulation_steps;  // in the place of the global batch
};

WrittenParallelism read_parallelism(const Node& table, Problems& problems);
// "full", or a table by module.
// Modules of selective recompute are the software's.
RecomputePlan read_recompute(TableReader& run, Software& software, Problems& problems);
// `folder`: where a data set's file is looked for; `seed`: of a generated one.
Data read_data(const Node& table, bool lengths_required, const std::filesystem::path& folder,
               std::uint64_t seed, const Model& model, InputFiles& files, Problems& problems);
GivenTimes read_given_times(const Node& table, Problems& problems);
// Sets the job's strategy and options: those given over the strategy's defaults.
void read_strategy(TableReader& run, Job& job, Problems& problems);

}  // namespace mllmsim::scenarios
