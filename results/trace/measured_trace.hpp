// A trace of a real training step as a timeline of the same shape as a simulated one, so that both
// can be drawn and compared.
//
// A trace is Chrome's JSON, as PyTorch's profiler writes it: a file per rank, or one for all. Of it
// count the actions of torch.distributed.pipelining ("PP:2F1": forward of micro-batch 1 through
// stage 2; B is a whole backward, I and W its gradients of inputs and of weights), and the
// optimizer ("optimizer", "Optimizer.step#AdamW.step"). Of several steps in a trace the last one
// counts. Clocks of all ranks are taken to be the same, as they are on one machine.
//
// An event's rank is that of its file (distributedInfo), or its process number if all are below the
// ranks of the run; otherwise files are ranks in their order. Stage s of a run with pp ranks is
// chunk s / pp of rank s % pp. What lies between the actions of a rank is idle.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "results/run/run_result.hpp"

namespace mllmsim::results {

// Named after the first file, with one step. UserError if there is no action, or one of a stage or
// rank that the run does not have.
RunResult read_trace(const std::vector<std::filesystem::path>& files, const RunResult& run);
RunResult parse_trace(const std::vector<std::pair<std::string, std::string>>& names_and_texts,
                      const RunResult& run);

bool is_trace(const std::filesystem::path& path);  // by its name: .json

}  // namespace mllmsim::results
