// One HTML file about some runs that needs nothing else: summary, where time goes, an interactive
// timeline, pictures, plans, assumptions, how to run them again.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "results/run/run_result.hpp"

namespace mllmsim::report {

struct ReportRun {
  results::RunResult result;
  std::string directory;  // where it was read
  std::string version;    // of the program that made it
};

// `price` of a GPU-hour, if the page shall say what runs cost. Without gnuplot a note takes the
// place of the pictures; `notes` gets it too.
std::string to_html(std::span<const ReportRun> runs, std::optional<double> price,
                    std::vector<std::string>& notes);

}  // namespace mllmsim::report
