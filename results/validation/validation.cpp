#include "results/validation/validation.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "results/run/run_scenario.hpp"
#include "results/validation/run_metric.hpp"
#include "scenarios/files/input_files.hpp"
#include "scenarios/tree/problems.hpp"
#include "sim/base/errors.hpp"
#include "sim/base/parallel.hpp"
#include "sim/base/quantile.hpp"

namespace mllmsim::validation {
namespace {

std::string key_of(const scenarios::PublishedPoint& point, const std::string& metric) {
  return fmt::format("points \"{}\": {}", point.id, metric);
}

double relative_error(double predicted, double published) { return predicted / published - 1; }

// Times and GPU-days are faster when smaller, rates when larger.
bool is_rate(const std::string& metric) {
  return metric.find("per_s") != std::string::npos || metric == "mfu" || metric == "hfu";
}

// By the first metric that both points have.
std::optional<SpeedupRow> speedup(const std::vector<ValidationRow>& of,
                                  const std::vector<ValidationRow>& over) {
  for (const ValidationRow& row : of)
    for (const ValidationRow& base : over) {
      if (row.flag || base.flag || row.metric != base.metric) continue;
      const bool rate = is_rate(row.metric);
      SpeedupRow out{row.id, base.id, row.source};
      out.predicted = rate ? row.predicted / base.predicted : base.predicted / row.predicted;
      out.published = rate ? row.published / base.published : base.published / row.published;
      out.relative_error = relative_error(out.predicted, out.published);
      return out;
    }
  return std::nullopt;
}

// Stages are compared with each other: their metrics count as one.
std::string metric_of_all_stages(const std::string& metric) {
  return metric.starts_with("stages.") ? metric.substr(metric.rfind('.') + 1) : metric;
}

// Takes refused rows out of their families, and what they have no figures for.
void leave_out_refused(std::vector<scenarios::PublishedFamily>& families,
                       const std::vector<ValidationPoint>& points,
                       std::vector<std::vector<ValidationRow>>& rows) {
  std::vector<std::vector<ValidationRow>> kept;
  std::size_t at = 0;
  for (scenarios::PublishedFamily& family : families) {
    std::vector<scenarios::PublishedPoint> runs;
    std::vector<Problem> problems;
    for (scenarios::PublishedPoint& point : family.points) {
      const std::vector<Problem>& refused = points[at].refused;
      if (refused.empty()) {
        runs.push_back(std::move(point));
        kept.push_back(std::move(rows[at]));
      } else {
        family.left_out.push_back({fmt::format("{}: {}", point.id, refused.front().text()), 1});
        problems.insert(problems.end(), refused.begin(), refused.end());
      }
      ++at;
    }
    if (runs.empty() && !problems.empty()) throw UserError(problems);
    family.points = std::move(runs);
  }
  rows = std::move(kept);
}

}  // namespace

std::vector<ValidationRow> rows_of(const ValidationPoint& p, const results::RunResult& run) {
  std::vector<ValidationRow> out;
  for (const scenarios::PublishedFigure& figure : p.point->figures) {
    const std::optional<double> predicted = run_metric(run, figure.metric);
    if (!predicted)
      throw UserError(figure.position.text(), key_of(*p.point, figure.metric),
                      "the run has no such stage");
    ValidationRow row;
    row.id = p.point->id;
    row.source = p.family->source;
    row.metric = figure.metric;
    row.predicted = *predicted;
    row.published = figure.value;
    row.flag = figure.flag;
    row.relative_error =
        figure.flag ? *predicted - figure.value : relative_error(*predicted, figure.value);
    row.family = p.family->file.stem().string();
    row.scenario_hash = run.scenario_hash;
    row.calibration_hash = run.calibration_hash;
    row.fits = run.fits;
    out.push_back(std::move(row));
  }
  return out;
}

std::vector<ValidationPoint> read_points(std::span<const scenarios::PublishedFamily> families,
                                         scenarios::InputFiles& files) {
  std::vector<ValidationPoint> out;
  for (const scenarios::PublishedFamily& family : families)
    for (const scenarios::PublishedPoint& point : family.points)
      out.push_back({&family, &point, {}});
  std::vector<scenarios::Problems> problems(out.size());
  parallel_for(out.size(), [&](std::size_t i) {
    for (const scenarios::PublishedFigure& figure : out[i].point->figures)
      if (const std::string problem = metric_problem(figure.metric); !problem.empty())
        problems[i].add(figure.position, key_of(*out[i].point, figure.metric), problem);
    try {
      out[i].scenario =
          scenarios::read_scenario_tree(out[i].point->run, out[i].family->file, &files);
    } catch (const UserError& e) {
      if (out[i].point->from_table)
        out[i].refused = e.problems();
      else
        problems[i].add(e);
    }
  });
  scenarios::Problems all;
  std::vector<std::string> seen;  // a mistake in what points share is said once
  for (const scenarios::Problems& p : problems) try {
      p.throw_if_any();
    } catch (const UserError& e) {
      if (std::find(seen.begin(), seen.end(), e.what()) != seen.end()) continue;
      seen.emplace_back(e.what());
      all.add(e);
    }
  all.throw_if_any();
  return out;
}

Validation validate(std::vector<scenarios::PublishedFamily>& families, Progress* progress) {
  scenarios::InputFiles files;
  std::vector<ValidationPoint> points = read_points(families, files);
  std::vector<std::vector<ValidationRow>> rows(points.size());
  if (progress) progress->begin(points.size(), "runs");
  parallel_for(points.size(), [&](std::size_t i) {
    const scenarios::Scenario& scenario = points[i].scenario;
    if (points[i].refused.empty()) try {
        rows[i] = rows_of(points[i], results::run_scenario(scenario, files, {.timeline = false}));
      } catch (const UserError& e) {
        if (!points[i].point->from_table) throw;
        points[i].refused = e.problems();
      } catch (const InternalError& e) {
        throw InternalError(fmt::format("{} (scenario {}, point \"{}\" of {})", e.what(),
                                        scenario.hash, points[i].point->id,
                                        scenario.file.string()));
      }
    if (progress) progress->done(true);
  });
  leave_out_refused(families, points, rows);
  return assemble(families, std::move(rows));
}

Validation assemble(std::span<const scenarios::PublishedFamily> families,
                    std::vector<std::vector<ValidationRow>> rows) {
  Validation out;
  std::size_t first = 0;  // index of the family's first point
  for (const scenarios::PublishedFamily& family : families) {
    for (std::size_t i = 0; i < family.points.size(); ++i)
      if (const auto over = family.points[i].speedup_over)
        if (auto row = speedup(rows[first + i], rows[first + *over])) out.speedups.push_back(*row);
    first += family.points.size();
  }
  for (auto& list : rows)
    for (ValidationRow& row : list) out.rows.push_back(std::move(row));
  return out;
}

SourceSummary summarise(const Validation& validation, const std::string& source) {
  const auto wanted = [&](const auto& row) { return source.empty() || row.source == source; };
  SourceSummary out;
  out.source = source;
  std::vector<double> errors, speedup_errors;
  // Ranks are compared inside a source and metric only: seconds of different jobs have no order.
  std::map<std::string, std::pair<std::vector<double>, std::vector<double>>> groups;
  std::set<std::pair<std::string, std::string>> known_not_to_fit;
  for (const ValidationRow& row : validation.rows)
    if (row.metric == "fits" && row.published == 0) known_not_to_fit.emplace(row.source, row.id);
  for (const ValidationRow& row : validation.rows) {
    if (!wanted(row)) continue;
    if (!row.fits && !known_not_to_fit.contains({row.source, row.id}) &&
        (out.misfits.empty() || out.misfits.back() != row.id))
      out.misfits.push_back(row.id);
    if (row.flag) {
      ++out.flags;
      out.right += row.relative_error == 0 ? 1 : 0;
      continue;
    }
    errors.push_back(row.relative_error);
    auto& [predicted, published] = groups[row.source + "\n" + metric_of_all_stages(row.metric)];
    predicted.push_back(row.predicted);
    published.push_back(row.published);
  }
  for (const SpeedupRow& row : validation.speedups)
    if (wanted(row)) speedup_errors.push_back(std::abs(row.relative_error));
  out.errors = error_statistics(errors);
  double weighted = 0, weight = 0;
  for (const auto& [name, group] : groups)
    if (const auto correlation = rank_correlation(group.first, group.second)) {
      weighted += *correlation * static_cast<double>(group.first.size());
      weight += static_cast<double>(group.first.size());
    }
  if (weight > 0) out.rank_correlation = weighted / weight;
  out.speedups = speedup_errors.size();
  if (!speedup_errors.empty()) out.speedup_error = quantile(speedup_errors, 0.5);
  return out;
}

std::vector<SourceSummary> summarise_by_source(const Validation& validation) {
  std::vector<SourceSummary> out;
  for (const ValidationRow& row : validation.rows) {
    const bool seen = std::any_of(out.begin(), out.end(),
                                  [&](const SourceSummary& s) { return s.source == row.source; });
    if (!seen) out.push_back(summarise(validation, row.source));
  }
  return out;
}

tables::Table validation_table(const Validation& validation) {
  tables::StringColumn id, source, metric, family, scenario_hash, calibration_hash;
  std::vector<double> predicted, published, error;
  std::vector<bool> fits;
  for (const ValidationRow& row : validation.rows) {
    id.push_back(row.id);
    source.push_back(row.source);
    metric.push_back(row.metric);
    predicted.push_back(row.predicted);
    published.push_back(row.published);
    error.push_back(row.relative_error);
    fits.push_back(row.fits);
    family.push_back(row.family);
    scenario_hash.push_back(row.scenario_hash);
    calibration_hash.push_back(row.calibration_hash);
  }
  return {{{"id", id},
           {"source", source},
           {"metric", metric},
           {"predicted", predicted},
           {"published", published},
           {"relative_error", error},
           {"fits", fits},
           {"family", family},
           {"scenario_hash", scenario_hash},
           {"calibration_hash", calibration_hash}}};
}

}  // namespace mllmsim::validation
