#include "results/validation_report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <boost/json.hpp>
#include <cmath>

#include "results/json.hpp"
#include "results/text_table.hpp"

namespace mllmsim {
namespace {

namespace json = boost::json;

std::string percent(double value) { return fmt::format("{:.1f} %", value * 100); }
std::string signed_percent(double value) { return fmt::format("{:+.1f} %", value * 100); }

// Bytes as GiB and shares as they are: what a person compares.
std::string figure(const ValidationRow& row, double value) {
  if (row.flag) return value != 0 ? "yes" : "no";
  if (row.metric.ends_with("_bytes")) return fmt::format("{:.2f} GiB", value / (1 << 30));
  return fmt::format("{:.4g}", value);
}

std::string error_text(const ValidationRow& row) {
  if (row.flag) return row.relative_error == 0 ? "right" : "WRONG";
  return signed_percent(row.relative_error) + (row.fits ? "" : " (does not fit)");
}

std::string rank_text(const SourceSummary& s) {
  return s.rank_correlation ? fmt::format("{:.3f}", *s.rank_correlation) : "";
}

std::string flags_text(const SourceSummary& s) {
  return s.flags > 0 ? fmt::format("{} of {}", s.right, s.flags) : "";
}

PublishedTarget target_of(const std::string& source, std::span<const PublishedFamily> families) {
  for (const PublishedFamily& f : families)
    if (f.source == source) return f.target;
  return {};
}

std::string target_text(const PublishedTarget& target) {
  std::string out;
  const auto add = [&](const char* name, const std::optional<double>& limit) {
    if (limit) out += fmt::format("{}{} <= {:.3g} %", out.empty() ? "" : ", ", name, *limit * 100);
  };
  add("median", target.median);
  add("mean", target.mean);
  add("largest", target.largest);
  return out;
}

std::vector<std::string> cells(const SourceSummary& s, const std::string& name,
                               const std::string& target, const std::string& verdict) {
  const bool any = s.errors.rows > 0;
  const auto shown = [&](const std::string& text) { return any ? text : std::string(); };
  return {name,
          std::to_string(s.errors.rows),
          shown(percent(s.errors.median)),
          shown(percent(s.errors.p90)),
          shown(percent(s.errors.mean)),
          shown(signed_percent(s.errors.bias)),
          rank_text(s),
          s.speedups > 0 ? percent(s.speedup_error) : "",
          flags_text(s),
          target,
          verdict};
}

const std::vector<std::string> kHeadings = {
    "source", "rows", "median", "p90", "mean", "bias", "rank", "speed-up", "yes/no", "target", ""};

std::string verdict(const SourceSummary& s, const PublishedTarget& target) {
  const bool bad_rank = s.rank_correlation && *s.rank_correlation < kRankTarget;
  const bool missed =
      !missed_targets(target, s).empty() || bad_rank || s.right < s.flags || !s.misfits.empty();
  return missed ? "missed" : "met";
}

std::vector<std::vector<std::string>> summary_cells(const Validation& validation,
                                                    std::span<const PublishedFamily> families) {
  std::vector<std::vector<std::string>> out;
  for (const SourceSummary& s : summarise_by_source(validation)) {
    const PublishedTarget target = target_of(s.source, families);
    out.push_back(cells(s, s.source, target_text(target), verdict(s, target)));
  }
  const SourceSummary all = summarise(validation, "");
  const bool met = all.errors.median <= kMedianTarget && all.errors.p90 <= kP90Target &&
                   all.misfits.empty() && all.right == all.flags;
  out.push_back(cells(
      all, "all",
      fmt::format("median <= {:.0f} %, p90 <= {:.0f} %", kMedianTarget * 100, kP90Target * 100),
      met ? "met" : "missed"));
  return out;
}

std::string skipped_text(std::span<const PublishedFamily> families, const std::string& bullet) {
  std::string out;
  for (const PublishedFamily& f : families)
    if (!f.skipped.empty()) out += fmt::format("{}{}: skipped: {}\n", bullet, f.source, f.skipped);
  return out;
}

json::object object_of(const SourceSummary& s) {
  json::object out{{"source", s.source.empty() ? "all" : s.source},
                   {"rows", s.errors.rows},
                   {"median", s.errors.median},
                   {"p90", s.errors.p90},
                   {"mean", s.errors.mean},
                   {"largest", s.errors.largest},
                   {"bias", s.errors.bias},
                   {"rank_correlation", nullptr},
                   {"speedups", s.speedups},
                   {"speedup_error", nullptr},
                   {"yes_no", s.flags},
                   {"yes_no_right", s.right},
                   {"said_not_to_fit", json::value_from(s.misfits)}};
  if (s.rank_correlation) out["rank_correlation"] = *s.rank_correlation;
  if (s.speedups > 0) out["speedup_error"] = s.speedup_error;
  return out;
}

std::string markdown_row(const std::vector<std::string>& cells) {
  std::string out = "|";
  for (const std::string& cell : cells) out += " " + cell + " |";
  return out + "\n";
}

// Headings, a rule, rows; the first column to the left, the others to the right.
std::string markdown_table(const std::vector<std::string>& headings,
                           const std::vector<std::vector<std::string>>& rows) {
  std::string out = markdown_row(headings) + "|---|";
  for (std::size_t i = 1; i < headings.size(); ++i) out += "---:|";
  out += "\n";
  for (const auto& row : rows) out += markdown_row(row);
  return out;
}

std::vector<std::string> sensitivity_headings() {
  std::vector<std::string> out = {"run"};
  out.insert(out.end(), kSensitivityParts.begin(), kSensitivityParts.end());
  return out;
}

std::vector<std::vector<std::string>> sensitivity_cells(const std::vector<SensitivityRow>& rows) {
  std::vector<std::vector<std::string>> out;
  for (const SensitivityRow& row : rows) {
    out.push_back({fmt::format("{}: {}", row.source, row.id)});
    for (const double change : row.change) out.back().push_back(signed_percent(change));
  }
  return out;
}

std::vector<std::vector<std::string>> row_cells(const Validation& validation,
                                                const std::string& source) {
  std::vector<std::vector<std::string>> out;
  for (const ValidationRow& row : validation.rows)
    if (row.source == source)
      out.push_back({row.id, row.metric, figure(row, row.predicted), figure(row, row.published),
                     error_text(row)});
  return out;
}

// Long tables show their ends: how good the best and how bad the worst are.
constexpr std::size_t kLongTable = 40, kShownMisses = 15;

std::string page_rows(const Validation& validation, const std::string& source) {
  const std::vector<std::string> headings = {"run", "metric", "predicted", "published", "error"};
  auto rows = row_cells(validation, source);
  if (rows.size() <= kLongTable) return markdown_table(headings, rows);
  std::vector<const ValidationRow*> worst;
  for (const ValidationRow& row : validation.rows)
    if (row.source == source) worst.push_back(&row);
  std::stable_sort(worst.begin(), worst.end(), [](const ValidationRow* a, const ValidationRow* b) {
    return std::abs(a->relative_error) > std::abs(b->relative_error);
  });
  rows.clear();
  for (std::size_t i = 0; i < kShownMisses; ++i)
    rows.push_back({worst[i]->id, worst[i]->metric, figure(*worst[i], worst[i]->predicted),
                    figure(*worst[i], worst[i]->published), error_text(*worst[i])});
  return fmt::format("The {} worst of {} rows:\n\n", kShownMisses, worst.size()) +
         markdown_table(headings, rows);
}

}  // namespace

std::string missed_targets(const PublishedTarget& target, const SourceSummary& summary) {
  std::string out;
  const auto look = [&](const char* name, const std::optional<double>& limit, double value) {
    if (limit && value > *limit)
      out += fmt::format("{}{} {:.1f} % ({:.3g} %)", out.empty() ? "" : ", ", name, value * 100,
                         *limit * 100);
  };
  if (summary.errors.rows == 0) return out;
  look("median", target.median, summary.errors.median);
  look("mean", target.mean, summary.errors.mean);
  look("largest", target.largest, summary.errors.largest);
  return out;
}

std::string validation_text(const Validation& validation,
                            std::span<const PublishedFamily> families) {
  std::string out;
  for (const SourceSummary& s : summarise_by_source(validation)) {
    out += s.source + "\n";
    TextTable table({{"run", Align::left, true},
                     {"metric", Align::left},
                     {"predicted"},
                     {"published"},
                     {"error"}});
    for (auto& row : row_cells(validation, s.source)) table.add_row(std::move(row));
    out += table.text(2, 120) + "\n";
  }
  if (!validation.speedups.empty()) {
    out += "speed-ups\n";
    TextTable table({{"run", Align::left, true},
                     {"over", Align::left, true},
                     {"predicted"},
                     {"published"},
                     {"error"}});
    for (const SpeedupRow& row : validation.speedups)
      table.add_row({row.id, row.over, fmt::format("{:.3f}", row.predicted),
                     fmt::format("{:.3f}", row.published), signed_percent(row.relative_error)});
    out += table.text(2, 120) + "\n";
  }
  std::vector<TextColumn> columns;
  for (const std::string& heading : kHeadings) columns.push_back({heading});
  columns[0] = {"source", Align::left, true};
  columns[9].align = columns[10].align = Align::left;
  TextTable table(columns);
  for (auto& row : summary_cells(validation, families)) table.add_row(std::move(row));
  out += "|error| by source\n" + table.text(2, 160);
  for (const SourceSummary& s : summarise_by_source(validation))
    for (const std::string& id : s.misfits)
      out += fmt::format("  {}: {}: was measured, but is said not to fit\n", s.source, id);
  return out + skipped_text(families, "  ");
}

std::string sensitivity_text(const std::vector<SensitivityRow>& rows) {
  std::vector<TextColumn> columns = {{"run", Align::left, true}};
  for (const char* part : kSensitivityParts) columns.push_back({part});
  TextTable table(columns);
  for (auto& row : sensitivity_cells(rows)) table.add_row(std::move(row));
  return "\niteration time if one part of the calibration is 10 % slower\n" + table.text(2, 200);
}

std::string validation_json(const Validation& validation, std::span<const PublishedFamily> families,
                            const std::vector<SensitivityRow>& sensitivity) {
  json::array rows, speedups, sources, skipped, changes;
  for (const ValidationRow& row : validation.rows)
    rows.push_back(json::object{{"id", row.id},
                                {"source", row.source},
                                {"metric", row.metric},
                                {"predicted", row.predicted},
                                {"published", row.published},
                                {"relative_error", row.relative_error},
                                {"fits", row.fits},
                                {"family", row.family},
                                {"scenario_hash", row.scenario_hash},
                                {"calibration_hash", row.calibration_hash}});
  for (const SpeedupRow& row : validation.speedups)
    speedups.push_back(json::object{{"id", row.id},
                                    {"over", row.over},
                                    {"source", row.source},
                                    {"predicted", row.predicted},
                                    {"published", row.published},
                                    {"relative_error", row.relative_error}});
  for (const SourceSummary& s : summarise_by_source(validation)) {
    json::object object = object_of(s);
    object["missed"] = missed_targets(target_of(s.source, families), s);
    sources.push_back(std::move(object));
  }
  for (const PublishedFamily& f : families)
    if (!f.skipped.empty())
      skipped.push_back(json::object{{"source", f.source}, {"reason", f.skipped}});
  for (const SensitivityRow& row : sensitivity) {
    json::object object{{"id", row.id}, {"source", row.source}};
    for (std::size_t i = 0; i < kSensitivityParts.size(); ++i)
      object[kSensitivityParts[i]] = row.change[i];
    changes.push_back(std::move(object));
  }
  return json_text(
      json::object{{"rows", std::move(rows)},
                   {"speedups", std::move(speedups)},
                   {"summary", json::object{{"all", object_of(summarise(validation, ""))},
                                            {"sources", std::move(sources)}}},
                   {"skipped", std::move(skipped)},
                   {"sensitivity", std::move(changes)}});
}

std::string validation_page(const Validation& validation, std::span<const PublishedFamily> families,
                            const std::vector<SensitivityRow>& sensitivity) {
  std::string out =
      "# Predictions against published runs\n\n"
      "Made by `mllmsim validate --page`; do not edit. Error: predicted / published - 1. Rank: "
      "Spearman's "
      "correlation inside a source. Speed-up: median |error| of ratios between two runs of a "
      "source. Yes/no: whether a run fits in memory.\n\n" +
      markdown_table(kHeadings, summary_cells(validation, families)) + "\n";
  out += skipped_text(families, "- ");
  std::string misses;
  for (const SourceSummary& s : summarise_by_source(validation)) {
    std::string missed = missed_targets(target_of(s.source, families), s);
    if (s.rank_correlation && *s.rank_correlation < kRankTarget)
      missed += fmt::format("{}rank correlation {:.3f} ({})", missed.empty() ? "" : ", ",
                            *s.rank_correlation, kRankTarget);
    if (s.right < s.flags)
      missed +=
          fmt::format("{}{} of {} yes-or-no figures", missed.empty() ? "" : ", ", s.right, s.flags);
    if (!missed.empty()) misses += fmt::format("- {}: {}\n", s.source, missed);
    for (const std::string& id : s.misfits)
      misses += fmt::format("- {}: {} was measured, but is said not to fit\n", s.source, id);
  }
  out += "\n## Targets missed\n\n" + (misses.empty() ? std::string("None.\n") : misses);
  if (!sensitivity.empty())
    out +=
        "\n## What to measure first\n\nHow much longer an iteration takes if one part of the "
        "calibration is 10 % slower:\n\n" +
        markdown_table(sensitivity_headings(), sensitivity_cells(sensitivity));
  for (const PublishedFamily& f : families) {
    if (!f.skipped.empty()) continue;
    out += fmt::format("\n## {}\n\n{}\n\n", f.source, f.description);
    for (const std::string& text : f.assumptions) out += "- " + text + "\n";
    out += (f.assumptions.empty() ? "" : "\n") + page_rows(validation, f.source);
  }
  return out;
}

}  // namespace mllmsim
