#include "results/validation/validation_cells.hpp"

#include <fmt/format.h>

#include "results/validation/validation_report.hpp"

namespace mllmsim::validation {
namespace {

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

std::string target_text(const scenarios::PublishedTarget& target) {
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
          shown(error_percent(s.errors.median)),
          shown(error_percent(s.errors.p90)),
          shown(error_percent(s.errors.mean)),
          shown(signed_percent(s.errors.bias)),
          rank_text(s),
          s.speedups > 0 ? error_percent(s.speedup_error) : "",
          flags_text(s),
          target,
          verdict};
}

std::string verdict(const SourceSummary& s, const scenarios::PublishedTarget& target) {
  const bool bad_rank = s.rank_correlation && *s.rank_correlation < kRankTarget;
  const bool missed =
      !missed_targets(target, s).empty() || bad_rank || s.right < s.flags || !s.misfits.empty();
  return missed ? "missed" : "met";
}

}  // namespace

std::string error_percent(double value) { return fmt::format("{:.1f} %", value * 100); }
std::string signed_percent(double value) { return fmt::format("{:+.1f} %", value * 100); }

scenarios::PublishedTarget target_of(const std::string& source,
                                     std::span<const scenarios::PublishedFamily> families) {
  for (const scenarios::PublishedFamily& f : families)
    if (f.source == source) return f.target;
  return {};
}

const std::vector<std::string> kSummaryHeadings = {
    "source", "rows", "median", "p90", "mean", "bias", "rank", "speed-up", "yes/no", "target", ""};

Cells summary_cells(const Validation& validation,
                    std::span<const scenarios::PublishedFamily> families) {
  Cells out;
  for (const SourceSummary& s : summarise_by_source(validation)) {
    const scenarios::PublishedTarget target = target_of(s.source, families);
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

std::vector<std::string> row_cells(const ValidationRow& row) {
  return {row.id, row.metric, figure(row, row.predicted), figure(row, row.published),
          error_text(row)};
}

Cells sensitivity_cells(const std::vector<SensitivityRow>& rows) {
  Cells out;
  for (const SensitivityRow& row : rows) {
    out.push_back({fmt::format("{}: {}", row.source, row.id)});
    for (const double change : row.change) out.back().push_back(signed_percent(change));
  }
  return out;
}

std::vector<std::string> ablation_headings() {
  std::vector<std::string> out = {"source", "all evidence", "all neutral"};
  for (const Knob& knob : fitted_knobs()) out.push_back(knob.name + " " + knob.neutral);
  return out;
}

Cells ablation_cells(const std::vector<AblationRow>& rows) {
  Cells out;
  for (const AblationRow& row : rows) {
    auto& cells = out.emplace_back(1, row.source);
    for (const AblationCell& cell : row.cells)
      cells.push_back(cell.speedup
                          ? fmt::format("{:.1f} / {:.1f} %", cell.median * 100, *cell.speedup * 100)
                          : error_percent(cell.median));
  }
  return out;
}

std::string skipped_text(std::span<const scenarios::PublishedFamily> families,
                         const std::string& bullet) {
  std::string out;
  for (const scenarios::PublishedFamily& f : families) {
    if (!f.skipped.empty()) out += fmt::format("{}{}: skipped: {}\n", bullet, f.source, f.skipped);
    for (const scenarios::LeftOut& rows : f.left_out)
      out += fmt::format("{}{}: {} rows left out: {}\n", bullet, f.source, rows.rows, rows.because);
  }
  return out;
}

std::string missed_targets(const scenarios::PublishedTarget& target, const SourceSummary& summary) {
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

}  // namespace mllmsim::validation
