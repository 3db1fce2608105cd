#include "cost_models/calibrate/run.hpp"

#include <fmt/core.h>

namespace mllmsim::calibrate {

std::vector<Task> remaining(const Plan& plan, const RawFile& file) {
  std::vector<Task> tasks;
  for (const Task& task : plan.tasks)
    if (!file.has(task)) tasks.push_back(task);
  return tasks;
}

int run_plan(const Plan& plan, Backend& backend, RawFile* file, Progress& progress,
             const Clock& now) {
  int measured = 0;
  for (const Task& task : plan.tasks) {
    const bool spans = group(task).nodes > 1;
    if (!spans && !file) continue;
    bool todo = !file || !file->has(task);
    if (spans) todo = backend.agree(todo) != 0;
    if (!todo) continue;
    try {
      const std::unique_ptr<Prepared> prepared = backend.prepare(task);
      const Agree agree = [&backend](double value) { return backend.agree(value); };
      const Summary summary =
          measure(*prepared, mode(task), plan.budget(task), now, spans ? agree : alone);
      if (file) file->append(task, summary);
      ++measured;
    } catch (const CannotMeasure& reason) {
      if (spans) throw;  // the other nodes would wait for ever
      progress.note(fmt::format("skipped {}: {}", key(task), reason.what()));
    }
    progress.done(plan.estimate_s(task), std::string(part(task)));
  }
  return measured;
}

}  // namespace mllmsim::calibrate
