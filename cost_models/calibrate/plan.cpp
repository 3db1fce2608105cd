#include "cost_models/calibrate/plan.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <map>

#include "cost_models/calibrate/shapes.hpp"
#include "sim/base/errors.hpp"
#include "sim/base/files.hpp"
#include "sim/base/json_reader.hpp"
#include "sim/base/text.hpp"

namespace mllmsim::calibrate {
namespace {

constexpr double kLeast = 0.02;  // seconds for one measurement
constexpr double kMost = 1.0;
constexpr double kOverlapWeight = 4;  // an overlap sample is two rows of GEMMs

double weight(const Task& task) {
  if (mode(task) == Mode::sustained) return 0;
  return std::holds_alternative<OverlapTask>(task) ? kOverlapWeight : 1;
}

std::vector<Task> all_tasks(const PlanOptions& o) {
  std::vector<Task> tasks = o.shapes;
  const auto add = [&tasks](std::vector<Task> more) {
    tasks.insert(tasks.end(), more.begin(), more.end());
  };
  add({LaunchTask{}});
  add(copy_tasks(o.quick));
  add(memory_tasks(o.quick));
  add(communication_tasks(o.quick, o.gpus, o.nodes));
  add(attention_tasks(o.quick, o.models));
  add(overlap_tasks(o.quick, o.gpus));
  add(gemm_tasks(o.quick, o.models));
  return tasks;
}

bool wanted(const Task& task, const PlanOptions& o) {
  const costs::GroupShape g = group(task);
  const Work w = work(task);
  return (o.parts.empty() || o.parts.count(std::string(part(task))) > 0) && g.nodes <= o.nodes &&
         g.ranks_per_node() <= o.gpus && w.flops <= o.most_flops && w.bytes <= o.most_bytes;
}

}  // namespace

Mode mode(const Task& task) {
  const auto* gemm = std::get_if<GemmTask>(&task);
  return gemm ? gemm->mode : Mode::burst;
}

NumberFormat format(const Task& task) {
  const auto* gemm = std::get_if<GemmTask>(&task);
  return gemm ? gemm->gemm.format : NumberFormat::bf16;
}

Plan make_plan(const PlanOptions& options) {
  Plan plan;
  plan.speed = options.speed;
  std::set<std::string> seen;
  for (const Task& task : all_tasks(options))
    if (wanted(task, options) && seen.insert(key(task)).second) plan.tasks.push_back(task);
  std::stable_partition(plan.tasks.begin(), plan.tasks.end(),
                        [](const Task& t) { return group(t).nodes > 1; });

  plan.sustained_s = std::min(options.quick ? 1.0 : 3.0, options.target_s / 20);
  double fixed = 0, weights = 0;
  for (const Task& task : plan.tasks) {
    fixed += options.speed.setup_s + (mode(task) == Mode::sustained ? plan.sustained_s : 0);
    weights += weight(task);
  }
  if (weights > 0) plan.burst_s = std::clamp((options.target_s - fixed) / weights, kLeast, kMost);
  return plan;
}

Budget Plan::budget(const Task& task) const {
  Budget budget;
  budget.seconds = mode(task) == Mode::sustained ? sustained_s : burst_s * weight(task);
  return budget;
}

double Plan::estimate_s(const Task& task) const {
  const Work w = work(task);
  const double one = w.flops / speed.flops_per_s + w.bytes / speed.bytes_per_s;
  return speed.setup_s + std::max(budget(task).seconds, (2 + kFewest) * one);
}

double Plan::estimate_s() const {
  double total = 0;
  for (const Task& task : tasks) total += estimate_s(task);
  return total;
}

namespace {

// A part has lines of its own for fp8, products of experts and exchanges of tokens.
std::string line_of(const Task& task) {
  std::string name(part(task));
  if (is_quantised(format(task))) name += " fp8";
  const auto* gemm = std::get_if<GemmTask>(&task);
  if (gemm && gemm->gemm.grouped) name += " of experts";
  const auto* collective = std::get_if<CollectiveTask>(&task);
  if (collective && collective->collective.op == costs::CollectiveOp::all_to_all)
    name += ", all-to-all";
  return name;
}

}  // namespace

std::string Plan::text() const {
  std::string out = fmt::format("{:<22} {:>7} {:>10}\n", "part", "count", "minutes");
  const auto line = [&out](std::string_view name, std::size_t count, double seconds) {
    out += fmt::format("{:<22} {:>7} {:>10.1f}\n", name, count, seconds / 60);
  };
  struct Sum {
    std::size_t count = 0;
    double seconds = 0;
  };
  for (const std::string_view name : kParts) {
    std::map<std::string, Sum> lines;
    for (const Task& task : tasks)
      if (part(task) == name) {
        Sum& sum = lines[line_of(task)];
        ++sum.count, sum.seconds += estimate_s(task);
      }
    for (const auto& [text, sum] : lines) line(text, sum.count, sum.seconds);
  }
  line("total", tasks.size(), estimate_s());
  return out + fmt::format("{:.2f} s a measurement at most, {:.1f} s a sustained one\n", burst_s,
                           sustained_s);
}

ModelShape parse_model(const std::string& text) {
  std::vector<std::int64_t> numbers;
  for (const std::string_view part : split(text, ','))
    if (const auto number = to_number<std::int64_t>(part); number && *number > 0)
      numbers.push_back(*number);
  const bool whole = numbers.size() == 5 && split(text, ',').size() == 5;
  if (!whole || numbers[0] % numbers[2] != 0 || numbers[1] % numbers[4] != 0 ||
      numbers[2] % numbers[4] != 0 || numbers[2] % numbers[3] != 0)
    throw UserError("command line", "--model",
                    fmt::format("expected hidden,ffn,heads,kv_heads,tp with hidden a multiple of "
                                "heads, heads of kv_heads and tp, ffn of tp; found \"{}\"",
                                text));
  return {numbers[0], numbers[1], numbers[2], numbers[3], numbers[4]};
}

std::vector<Task> read_shapes(const std::filesystem::path& file) {
  const std::string text = read_file(file, kLargeFile);
  std::vector<Task> tasks;
  std::string_view rest = text;
  for (int number = 1; !rest.empty(); ++number) {
    const std::string_view line = take_line(rest);
    if (trimmed(line).empty()) continue;
    const std::string where = fmt::format("{}:{}", file.string(), number);
    const boost::json::value value = parse_json(line, file.string(), number);
    const JsonObject object(value, where);
    if (object.has("header")) continue;
    const Task task = task_from_json(value, where);
    const auto* gemm = std::get_if<GemmTask>(&task);
    if (!gemm || object.has("pass")) {
      tasks.push_back(task);
      continue;
    }
    for (costs::GemmPass pass : {costs::GemmPass::forward, costs::GemmPass::input_gradient,
                                 costs::GemmPass::weight_gradient}) {
      GemmTask one = *gemm;
      one.gemm.pass = pass;
      tasks.push_back(one);
    }
  }
  return tasks;
}

}  // namespace mllmsim::calibrate
