#include "strategies/lower/step_builder.hpp"

#include "sim/base/errors.hpp"
#include "strategies/lower/plan_costs.hpp"

namespace mllmsim::lower {

StepBuilder::StepBuilder(const Job& job, const Plan& plan, bool grouped)
    : job_(job),
      plan_(plan),
      program_(static_cast<std::uint32_t>(plan.micro_batches.size() * plan.stages.size())),
      grouped_(grouped),
      shapes_(shapes_of(plan)) {
  check(!plan.stages.empty() && !plan.micro_batches.empty(), "a plan has stages and micro-batches");
  ranks_ = static_cast<int>(plan.stages.size());
  chunks_ = static_cast<std::uint32_t>(plan.stages.front().size());
  micro_batches_ = static_cast<std::uint32_t>(plan.micro_batches.front().size());
  for (const std::vector<MicroBatch>& replica : plan.micro_batches)
    check(replica.size() == micro_batches(), "replicas have equally many micro-batches");
  for (int rank = 0; rank < ranks(); ++rank)
    schedules_.push_back(mllmsim::schedule(plan.schedule, ranks(), static_cast<int>(chunks()),
                                           micro_batches(), rank, plan.micro_batch_group));
  boundaries_.resize((shapes_.back() + std::size_t{1}) * plan.stages.size() * chunks() * 2);
  passes_.resize(std::size_t{program_.devices()} * micro_batches() * chunks() * 2);
  // By stage: a pass, its start, both sides of its transfer; what waits for them.
  program_.reserve(4 * passes_.size(), 4 * passes_.size());
}

std::uint32_t StepBuilder::label(const char* part, std::string_view name) {
  const auto address = [](const char* text) { return reinterpret_cast<std::uintptr_t>(text); };
  KnownLabel& known =
      known_labels_[(address(part) * 7 + address(name.data())) / 4 % known_labels_.size()];
  if (known.part != part || known.name != name.data())
    known = {part, name.data(), program_.label(std::string(part).append(name))};
  return known.label;
}

std::optional<int> StepBuilder::stage_before(int rank, const Pass& pass) const {
  return stage_after(rank, {!pass.forward, pass.micro_batch, pass.chunk});
}

std::optional<int> StepBuilder::stage_after(int rank, const Pass& pass) const {
  const int to = stage(rank, pass) + (pass.forward ? 1 : -1);
  if (ranks() == 1 || to < 0 || to >= ranks() * static_cast<int>(chunks())) return std::nullopt;
  return to;
}

Task StepBuilder::task_of(const Pass& pass, DeviceId device, StreamKind stream, TaskKind kind,
                          std::uint32_t label) const {
  Task task;
  task.stream = Program::stream(device, stream);
  task.kind = kind;
  task.label = label;
  task.micro_batch = static_cast<std::int32_t>(pass.micro_batch);
  task.chunk = static_cast<std::int16_t>(pass.chunk);
  task.in_backward = !pass.forward;
  return task;
}

TaskId StepBuilder::add_after(TaskId previous, const Task& task) {
  const TaskId id = program_.add(task);
  if (previous && program_.tasks()[previous.value].stream != task.stream)
    program_.add_dependency(previous, id);
  return id;
}

StepBuilder::Transfer StepBuilder::add_transfer(const Message& message, Task send, Task receive) {
  const TransferId transfer = program_.add_transfer(message.route, message.factor);
  for (Task* side : {&send, &receive}) {
    side->duration = message.time;
    side->bytes = message.bytes;
    side->transfer = transfer;
  }
  send.kind = TaskKind::pp_send;
  receive.kind = TaskKind::pp_recv;
  const TaskId sent = program_.add(send);
  return {sent, program_.add(receive)};
}

}  // namespace mllmsim::lower
