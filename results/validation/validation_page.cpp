// The page that results/validation.md is: hits and misses, assumptions, all rows.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "results/validation/validation_cells.hpp"
#include "results/validation/validation_report.hpp"

namespace mllmsim::validation {
namespace {

std::string markdown_row(const std::vector<std::string>& cells) {
  std::string out = "|";
  for (const std::string& cell : cells) out += " " + cell + " |";
  return out + "\n";
}

// Headings, a rule, rows; the first column to the left, the others to the right.
std::string markdown_table(const std::vector<std::string>& headings, const Cells& rows) {
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

std::string ablation_section(const std::vector<AblationRow>& rows) {
  std::string out =
      "\n## What rests on these runs\n\nMedian |error| (and, behind the stroke, of speed-ups) "
      "with all evidence, with everything that was chosen by looking at runs of this page made "
      "neutral, and with one such constant neutral at a time (`validate --ablate`). A source whose "
      "error hardly grows is predicted; one whose error grows much is calibrated.\n\n" +
      markdown_table(ablation_headings(), ablation_cells(rows)) + "\n";
  for (const Knob& knob : fitted_knobs())
    out += fmt::format("- {}, neutral {}; chosen with: {}\n", knob.name, knob.neutral,
                       knob.chosen_with);
  return out;
}

// Long tables show their ends: how good the best and how bad the worst are.
constexpr std::size_t kLongTable = 40, kShownMisses = 15;

std::string page_rows(const Validation& validation, const std::string& source) {
  const std::vector<std::string> headings = {"run", "metric", "predicted", "published", "error"};
  Cells rows;
  for (const ValidationRow& row : validation.rows)
    if (row.source == source) rows.push_back(row_cells(row));
  if (rows.size() <= kLongTable) return markdown_table(headings, rows);
  std::vector<const ValidationRow*> worst;
  for (const ValidationRow& row : validation.rows)
    if (row.source == source) worst.push_back(&row);
  std::stable_sort(worst.begin(), worst.end(), [](const ValidationRow* a, const ValidationRow* b) {
    return std::abs(a->relative_error) > std::abs(b->relative_error);
  });
  rows.clear();
  for (std::size_t i = 0; i < kShownMisses; ++i) rows.push_back(row_cells(*worst[i]));
  return fmt::format("The {} worst of {} rows:\n\n", kShownMisses, worst.size()) +
         markdown_table(headings, rows);
}

}  // namespace

std::string validation_page(const Validation& validation,
                            std::span<const scenarios::PublishedFamily> families,
                            const FurtherTables& further) {
  std::string out =
      "# Predictions against published runs\n\n"
      "Made by `mllmsim validate --page`; do not edit. Error: predicted / published - 1. Rank: "
      "Spearman's "
      "correlation inside a source. Speed-up: median |error| of ratios between two runs of a "
      "source. Yes/no: whether a run fits in memory. What was inferred from these rows themselves: "
      "[scenarios/published](../scenarios/published/README.md).\n\n" +
      markdown_table(kSummaryHeadings, summary_cells(validation, families)) + "\n";
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
  if (!further.ablation.empty()) out += ablation_section(further.ablation);
  if (!further.sensitivity.empty())
    out +=
        "\n## What to measure first\n\nHow much longer an iteration takes if one part of the "
        "calibration is 10 % slower:\n\n" +
        markdown_table(sensitivity_headings(), sensitivity_cells(further.sensitivity));
  for (const scenarios::PublishedFamily& f : families) {
    if (!f.skipped.empty()) continue;
    out += fmt::format("\n## {}\n\n{}\n\n", f.source, f.description);
    for (const std::string& text : f.assumptions) out += "- " + text + "\n";
    out += (f.assumptions.empty() ? "" : "\n") + page_rows(validation, f.source);
  }
  return out;
}

}  // namespace mllmsim::validation
