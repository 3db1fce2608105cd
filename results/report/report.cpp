#include "results/report/report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <boost/json.hpp>

#include "results/report/html.hpp"
#include "results/report/report_assets.hpp"
#include "results/report/sections.hpp"
#include "results/report/timeline_data.hpp"

namespace mllmsim::report {
namespace {

// "internvl-6b-20b: baseline, omnibal; llama-3-8b: baseline"
std::string title(std::span<const ReportRun> runs) {
  std::vector<std::pair<std::string, std::vector<std::string>>> models;
  for (const ReportRun& r : runs) {
    const std::string& name = r.result.model.empty() ? r.result.name : r.result.model;
    if (models.empty() || models.back().first != name) models.push_back({name, {}});
    std::vector<std::string>& all = models.back().second;
    if (std::ranges::find(all, r.result.strategy) == all.end()) all.push_back(r.result.strategy);
  }
  std::string out;
  for (const auto& [model, strategies] : models) {
    out += (out.empty() ? "" : "; ") + model;
    for (std::size_t i = 0; i < strategies.size(); ++i) out += (i ? ", " : ": ") + strategies[i];
  }
  return out;
}

}  // namespace

std::string to_html(std::span<const ReportRun> runs, std::optional<double> price,
                    std::vector<std::string>& notes) {
  std::vector<results::RunResult> results;
  for (const ReportRun& r : runs) results.push_back(r.result);
  return page_start(title(runs),
                    "<li><a href=\"#answer\">Answer</a></li>"
                    "<li><a href=\"#timeline-section\">Timeline</a></li>"
                    "<li><a href=\"#pictures\">Pictures</a></li>"
                    "<li><a href=\"#plan\">Plan</a></li>"
                    "<li><a href=\"#assumptions\">Assumptions</a></li>"
                    "<li><a href=\"#reproduce\">How to reproduce</a></li>") +
         answer_section(runs, price) + timeline_section() + pictures_section(runs, notes) +
         plan_section(runs) + assumptions_section(runs) + reproduce_section(runs) +
         page_end(timeline_data(results), kReportScript);
}

}  // namespace mllmsim::report
