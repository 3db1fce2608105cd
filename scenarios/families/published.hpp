// A family of runs that other people measured: one run file, a list of points that change it, and
// the figures they published. scenarios/published/README.md says how to write one.
//
//   source = "..."                the name its rows are grouped by
//   target = { median = 0.1 }     what its errors must stay below
//   [[points]]                    id, set = { changes }, published = { metric = figure }
//   [points] csv = "..."          or one point per row of a CSV file, columns mapped to keys
//
// Everything else in the file is the run that all points share.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "scenarios/families/published_csv.hpp"
#include "scenarios/tree/node.hpp"

namespace mllmsim::scenarios {

// One published number and the column of a run's results it is compared with: "iteration_s",
// "stages.0.forward_s". Quantities are in base units. A flag (`fits = false`) is 0 or 1.
struct PublishedFigure {
  std::string metric;
  double value = 0;
  bool flag = false;
  Position position;
};

struct PublishedPoint {
  std::string id;
  Position position;
  Node run;  // the family's run with the point's changes and the command line's
  std::vector<PublishedFigure> figures;
  std::optional<std::size_t> speedup_over;  // index of the point it is compared with
  bool sensitivity = false;                 // one of the runs of the sensitivity table
  bool from_table = false;                  // a row of a CSV file
};

// Limits of |relative error| over a family's rows; absent: none stated.
struct PublishedTarget {
  std::optional<double> median, mean, largest;
};

struct PublishedFamily {
  std::filesystem::path file;
  std::string source, description;
  std::vector<std::string> assumptions;
  PublishedTarget target;
  std::vector<PublishedPoint> points;
  std::vector<LeftOut> left_out;
  std::string skipped;  // why there are no points: a CSV file that is not shipped
};

// `overrides` are "a.b=c" of the command line, laid over every point; "points.csv=PATH" names the
// CSV file. A CSV file is otherwise looked for beside the family's file, in `csv_directory` and in
// the folders below that. Throws UserError with every problem found.
PublishedFamily read_published(const std::filesystem::path& file,
                               const std::vector<std::string>& overrides,
                               const std::filesystem::path& csv_directory);

}  // namespace mllmsim::scenarios
