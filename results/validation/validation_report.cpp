#include "results/validation/validation_report.hpp"

#include <fmt/format.h>

#include "results/text/text_table.hpp"
#include "results/validation/validation_cells.hpp"

namespace mllmsim::validation {

std::string validation_text(const Validation& validation,
                            std::span<const scenarios::PublishedFamily> families) {
  std::string out;
  for (const SourceSummary& s : summarise_by_source(validation)) {
    out += s.source + "\n";
    results::TextTable table({{"run", results::Align::left, true},
                              {"metric", results::Align::left},
                              {"predicted"},
                              {"published"},
                              {"error"}});
    for (const ValidationRow& row : validation.rows)
      if (row.source == s.source) table.add_row(row_cells(row));
    out += table.text(2, 120) + "\n";
  }
  if (!validation.speedups.empty()) {
    out += "speed-ups\n";
    results::TextTable table({{"run", results::Align::left, true},
                              {"over", results::Align::left, true},
                              {"predicted"},
                              {"published"},
                              {"error"}});
    for (const SpeedupRow& row : validation.speedups)
      table.add_row({row.id, row.over, fmt::format("{:.3f}", row.predicted),
                     fmt::format("{:.3f}", row.published), signed_percent(row.relative_error)});
    out += table.text(2, 120) + "\n";
  }
  std::vector<results::TextColumn> columns;
  for (const std::string& heading : kSummaryHeadings) columns.push_back({heading});
  columns[0] = {"source", results::Align::left, true};
  columns[9].align = columns[10].align = results::Align::left;
  results::TextTable table(columns);
  for (auto& row : summary_cells(validation, families)) table.add_row(std::move(row));
  out += "|error| by source\n" + table.text(2, 160);
  for (const SourceSummary& s : summarise_by_source(validation))
    for (const std::string& id : s.misfits)
      out += fmt::format("  {}: {}: was measured, but is said not to fit\n", s.source, id);
  return out + skipped_text(families, "  ");
}

std::string sensitivity_text(const std::vector<SensitivityRow>& rows) {
  std::vector<results::TextColumn> columns = {{"run", results::Align::left, true}};
  for (const char* part : kSensitivityParts) columns.push_back({part});
  results::TextTable table(columns);
  for (auto& row : sensitivity_cells(rows)) table.add_row(std::move(row));
  return "\niteration time if one part of the calibration is 10 % slower\n" + table.text(2, 200);
}

std::string ablation_text(const std::vector<AblationRow>& rows) {
  std::vector<results::TextColumn> columns;
  for (std::size_t i = 0; i < 3 + fitted_knobs().size(); ++i)
    columns.push_back({i < 3 ? ablation_headings()[i] : fmt::format("{} neutral", i - 2)});
  columns[0] = {"source", results::Align::left, true};
  results::TextTable table(columns);
  for (auto& row : ablation_cells(rows)) table.add_row(std::move(row));
  std::string out =
      "\nmedian |error| (/ of speed-ups) without what was chosen by looking at these runs\n" +
      table.text(2, 200);
  for (std::size_t i = 0; i < fitted_knobs().size(); ++i) {
    const Knob& knob = fitted_knobs()[i];
    out += fmt::format("  {}: {} = {}; chosen with: {}\n", i + 1, knob.name, knob.neutral,
                       knob.chosen_with);
  }
  return out;
}

}  // namespace mllmsim::validation
