#include "results/validation/ablation.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

#include "results/run/run_scenario.hpp"
#include "scenarios/files/input_files.hpp"
#include "sim/base/parallel.hpp"

namespace mllmsim::validation {
namespace {

template <class T>
bool set(T& value, const T& neutral) {
  const bool changed = !(value == neutral);
  value = neutral;
  return changed;
}

bool set_seconds(Seconds& value, double neutral) { return set(value.value, neutral); }

// The rows of validation, point by point: a point has as many as it has figures.
std::vector<std::vector<ValidationRow>> by_point(const std::vector<ValidationPoint>& points,
                                                 const Validation& validation) {
  std::vector<std::vector<ValidationRow>> out;
  auto at = validation.rows.begin();
  for (const ValidationPoint& p : points) {
    const auto end = at + static_cast<std::ptrdiff_t>(p.point->figures.size());
    out.emplace_back(at, end);
    at = end;
  }
  return out;
}

class Ablating {
 public:
  Ablating(std::span<const scenarios::PublishedFamily> families, const Validation& validation,
           std::size_t columns, Progress* progress)
      : families_(families),
        progress_(progress),
        points_(read_points(families, files_)),
        unchanged_(by_point(points_, validation)) {
    if (progress_) progress_->begin(columns * points_.size(), "runs without fitted constants");
  }

  Validation without(std::span<const Knob> knobs) {
    auto rows = unchanged_;
    parallel_for(points_.size(), [&](std::size_t i) {
      const bool changed = run_without(knobs, points_[i], rows[i]);
      if (progress_) progress_->done(changed);
    });
    return assemble(families_, std::move(rows));
  }

 private:
  // False if no knob touches the point.
  bool run_without(std::span<const Knob> knobs, const ValidationPoint& point,
                   std::vector<ValidationRow>& rows) {
    scenarios::Scenario scenario = point.scenario;
    if (scenario.job.given_times) return false;
    costs::Calibration calibration = files_.calibration(scenario.calibration);
    bool changed = false;
    for (const Knob& knob : knobs) changed |= knob.neutralise(scenario.job, calibration);
    if (changed)
      rows = rows_of(point, results::run_scenario(scenario, calibration, {.timeline = false}));
    return changed;
  }

  std::span<const scenarios::PublishedFamily> families_;
  Progress* progress_;
  scenarios::InputFiles files_;
  std::vector<ValidationPoint> points_;
  std::vector<std::vector<ValidationRow>> unchanged_;
};

void add_column(std::vector<AblationRow>& table, const Validation& validation) {
  for (AblationRow& row : table) {
    const SourceSummary s = summarise(validation, row.source == "all" ? "" : row.source);
    AblationCell cell{s.errors.median, {}};
    if (s.speedups > 0) cell.speedup = s.speedup_error;
    row.cells.push_back(cell);
  }
}

}  // namespace

const std::vector<Knob>& fitted_knobs() {
  static const std::vector<Knob> knobs = {
      {"software.host_time_per_kernel", "8 us",
       "55 us of Megatron-DeepSpeed: smallest runs of vTrain (one node)",
       [](Job& job, costs::Calibration&) {
         return set_seconds(job.software.host_time_per_kernel, 8e-6);
       }},
      {"software.host_time_per_pass", "0",
       "0.5 ms: zero bubble (throughput), MegaScale; 1.2 ms of Megatron of 2023: measured in zero "
       "bubble's rows",
       [](Job& job, costs::Calibration&) {
         return set_seconds(job.software.host_time_per_pass, 0);
       }},
      {"cluster.gpu_speed_spread", "0",
       "0.015 is of Sinha et al., SC 2022; that all runs use it was decided with SC'21 and "
       "MegaScale",
       [](Job& job, costs::Calibration&) { return set(job.cluster.gpu_speed_spread, 0.0); }},
      {"calibration gemm.sustained", "1",
       "no run: 1.122 was measured on B200 and is transferred to H100, so it is not among those "
       "made neutral together; much rests on it",
       [](Job&, costs::Calibration& c) { return set(c.gemm.sustained.value, 1.0); }, false},
  };
  return knobs;
}

std::vector<AblationRow> ablate(std::span<const scenarios::PublishedFamily> families,
                                const Validation& validation, Progress* progress) {
  std::vector<AblationRow> table;
  for (const SourceSummary& s : summarise_by_source(validation))
    if (s.errors.rows > 0) table.push_back({s.source, {}});
  table.push_back({"all", {}});
  add_column(table, validation);
  const std::vector<Knob>& knobs = fitted_knobs();
  Ablating ablating(families, validation, 1 + knobs.size(), progress);
  std::vector<Knob> chosen;
  std::ranges::copy_if(knobs, std::back_inserter(chosen), &Knob::by_runs);
  add_column(table, ablating.without(chosen));
  for (const Knob& knob : knobs) add_column(table, ablating.without({&knob, 1}));
  return table;
}

}  // namespace mllmsim::validation
