// Predictions against what others measured: every point of every family simulated, each published
// figure a row.
//
// Figures that are yes or no (does it fit?) are kept apart: they are right or wrong, not off by so
// much. A run that was measured must fit; one that is said not to is listed by name.
#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "results/run/run_result.hpp"
#include "results/validation/statistics.hpp"
#include "scenarios/families/published.hpp"
#include "scenarios/files/input_files.hpp"
#include "scenarios/read/scenario.hpp"
#include "sim/base/progress.hpp"
#include "sim/tables/parquet.hpp"

namespace mllmsim::validation {

struct ValidationRow {
  std::string id, source, metric;
  double predicted = 0, published = 0, relative_error = 0;
  std::string family;  // the file's name
  std::string scenario_hash, calibration_hash;
  bool fits = true;   // what is predicted of the point
  bool flag = false;  // yes or no: 1 or 0, the error their difference
};

// How much faster one point of a source is than another.
struct SpeedupRow {
  std::string id, over, source;
  double predicted = 0, published = 0, relative_error = 0;
};

struct Validation {
  std::vector<ValidationRow> rows;
  std::vector<SpeedupRow> speedups;
};

// A point that can be simulated, and what was published of it.
struct ValidationPoint {
  const scenarios::PublishedFamily* family;
  const scenarios::PublishedPoint* point;
  scenarios::Scenario scenario;
  std::vector<Problem> refused{};  // why a row of a table is no run
};

// Every point of the families, read. UserError with every problem, metrics' names included, but for
// rows of tables, of which some may be refused.
std::vector<ValidationPoint> read_points(std::span<const scenarios::PublishedFamily> families,
                                         scenarios::InputFiles& files);

// One point's rows, and all points' rows with their speed-ups.
std::vector<ValidationRow> rows_of(const ValidationPoint& point, const results::RunResult& run);
Validation assemble(std::span<const scenarios::PublishedFamily> families,
                    std::vector<std::vector<ValidationRow>> rows_by_point);

// Rows of tables that cannot be read or planned are moved from their family's points to what it
// leaves out; UserError if that leaves none.
Validation validate(std::vector<scenarios::PublishedFamily>& families,
                    Progress* progress = nullptr);

// A source's rows in figures.
struct SourceSummary {
  std::string source;
  ErrorStatistics errors;
  std::optional<double> rank_correlation;  // of rows of one metric; mean over metrics by rows
  std::size_t speedups = 0;
  double speedup_error = 0;          // median |relative error| of speed-ups
  std::size_t flags = 0, right = 0;  // yes-or-no figures, and how many are predicted
  std::vector<std::string> misfits;  // measured, but said not to fit
};
// By source in order of appearance, without flags.
std::vector<SourceSummary> summarise_by_source(const Validation& validation);
SourceSummary summarise(const Validation& validation, const std::string& source);  // "": all

tables::Table validation_table(const Validation& validation);

}  // namespace mllmsim::validation
