#include "results/validation/run_metric.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "results/run/run_fields.hpp"
#include "sim/base/text.hpp"

namespace mllmsim::validation {
namespace {

// Looks for one column of a row and notes the names of all numeric ones.
struct Look {
  std::string_view wanted;
  std::optional<double> found{};
  std::vector<std::string> names{};

  template <class T>
  void field(std::string_view name, const T& value) {
    const auto& column = results::plain(value);
    if constexpr (!std::is_same_v<std::remove_cvref_t<decltype(column)>, std::string>) {
      names.emplace_back(name);
      if (name == wanted) found = static_cast<double>(column);
    }
  }
  template <class T>
  void derived(std::string_view name, const T& value) {
    field(name, value);
  }
};

constexpr std::string_view kStages = "stages.";

struct StageMetric {
  std::string_view which, column;
};

std::optional<StageMetric> stage_metric(std::string_view name) {
  if (!name.starts_with(kStages)) return std::nullopt;
  name.remove_prefix(kStages.size());
  const std::size_t dot = name.find('.');
  if (dot == std::string_view::npos) return std::nullopt;
  return StageMetric{name.substr(0, dot), name.substr(dot + 1)};
}

Look look_at(const results::RunResult& run, const results::StageRow& stage,
             std::string_view column) {
  Look look{column};
  results::each_field(stage, look);
  look.derived("free_memory_bytes", run.gpu_memory - stage.peak_memory);
  look.derived("state_bytes", stage.held.model_state());
  return look;
}

}  // namespace

std::optional<double> run_metric(const results::RunResult& run, std::string_view name) {
  const auto staged = stage_metric(name);
  if (!staged) {
    Look look{name};
    results::each_field(run, look);
    return look.found;
  }
  std::vector<double> values;
  for (const results::StageRow& stage : run.stages)
    if (const auto value = look_at(run, stage, staged->column).found) values.push_back(*value);
  if (values.empty()) return std::nullopt;
  if (staged->which == "last") return values.back();
  if (staged->which == "max") return *std::max_element(values.begin(), values.end());
  if (staged->which == "min") return *std::min_element(values.begin(), values.end());
  if (staged->which == "sum") {
    double sum = 0;
    for (const double value : values) sum += value;
    return sum;
  }
  const auto index = to_number<std::size_t>(staged->which);
  return index && *index < values.size() ? std::optional(values[*index]) : std::nullopt;
}

std::string metric_problem(std::string_view name) {
  const results::RunResult run;
  const auto staged = stage_metric(name);
  Look look{name};
  if (staged) {
    look = look_at(run, results::StageRow{}, staged->column);
    const bool known = staged->which == "max" || staged->which == "min" || staged->which == "sum" ||
                       staged->which == "last" || to_number<std::size_t>(staged->which);
    if (!known)
      return fmt::format("expected a stage's number, last, max, min or sum, found \"{}\"",
                         staged->which);
  } else {
    results::each_field(run, look);
  }
  if (look.found) return "";
  return fmt::format("no such column of numbers{}", did_you_mean(look.wanted, look.names));
}

}  // namespace mllmsim::validation
