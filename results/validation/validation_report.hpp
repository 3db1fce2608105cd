// A validation for people (text, and a page in Markdown) and for programs (JSON).
#pragma once

#include <span>
#include <string>
#include <vector>

#include "results/validation/ablation.hpp"
#include "results/validation/sensitivity.hpp"
#include "results/validation/validation.hpp"

namespace mllmsim::validation {

// What all rows together must reach.
inline constexpr double kMedianTarget = 0.06, kP90Target = 0.15, kRankTarget = 0.95;

std::string validation_text(const Validation& validation,
                            std::span<const scenarios::PublishedFamily> families);
std::string sensitivity_text(const std::vector<SensitivityRow>& rows);
std::string ablation_text(const std::vector<AblationRow>& rows);

// Tables that are made only when asked for; empty: not asked for.
struct FurtherTables {
  std::vector<SensitivityRow> sensitivity;
  std::vector<AblationRow> ablation;
};

// {"rows": [{"id", "source", "metric", "predicted", "published", "relative_error", ...}],
//  "speedups": [...], "summary": {"all": {...}, "sources": [...]}, "skipped": [...],
//  "sensitivity": [...], "ablation": {"knobs": [...], "sources": [...]}}
std::string validation_json(const Validation& validation,
                            std::span<const scenarios::PublishedFamily> families,
                            const FurtherTables& further);

std::string validation_page(const Validation& validation,
                            std::span<const scenarios::PublishedFamily> families,
                            const FurtherTables& further);

// Which of a family's targets its rows miss, as text: "median 12.1 % (10 %)"; empty if none.
std::string missed_targets(const scenarios::PublishedTarget& target, const SourceSummary& summary);

}  // namespace mllmsim::validation
