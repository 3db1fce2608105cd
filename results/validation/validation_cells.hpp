// The cells of a validation's tables, which text and page share. Private to the reports.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "results/validation/ablation.hpp"
#include "results/validation/sensitivity.hpp"
#include "results/validation/validation.hpp"

namespace mllmsim::validation {

using Cells = std::vector<std::vector<std::string>>;

std::string error_percent(double value);   // "7.1 %"
std::string signed_percent(double value);  // "+7.1 %"

scenarios::PublishedTarget target_of(const std::string& source,
                                     std::span<const scenarios::PublishedFamily> families);

// By source and over all: kSummaryHeadings.
extern const std::vector<std::string> kSummaryHeadings;
Cells summary_cells(const Validation& validation,
                    std::span<const scenarios::PublishedFamily> families);

// Run, metric, predicted, published, error.
std::vector<std::string> row_cells(const ValidationRow& row);

// The run, then a change for each part.
Cells sensitivity_cells(const std::vector<SensitivityRow>& rows);

// The source, then its medians with all evidence, all knobs neutral, each knob neutral.
std::vector<std::string> ablation_headings();
Cells ablation_cells(const std::vector<AblationRow>& rows);

// A line for each family that was skipped.
std::string skipped_text(std::span<const scenarios::PublishedFamily> families,
                         const std::string& bullet);

}  // namespace mllmsim::validation
