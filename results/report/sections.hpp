// The sections of a report, each as HTML. report.cpp puts them on a page.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "results/report/report.hpp"

namespace mllmsim::report {

// What wins and by how much, where the time goes, and the figures of all runs (answer.cpp).
std::string answer_section(std::span<const ReportRun> runs, std::optional<double> price);
std::string timeline_section();
std::string pictures_section(std::span<const ReportRun> runs, std::vector<std::string>& notes);
std::string plan_section(std::span<const ReportRun> runs);
std::string assumptions_section(std::span<const ReportRun> runs);
std::string reproduce_section(std::span<const ReportRun> runs);

}  // namespace mllmsim::report
