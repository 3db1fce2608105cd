#include "results/report/report.hpp"

#include <fmt/format.h>

#include <boost/json.hpp>

#include "results/report/html.hpp"
#include "results/report/report_assets.hpp"
#include "results/report/sections.hpp"
#include "results/report/timeline_data.hpp"
#include "results/run/version.hpp"
#include "sim/base/json_writer.hpp"

namespace mllmsim::report {
namespace {

// JSON inside a page: no text in it may end the script.
std::string embedded(const boost::json::object& object) {
  std::string out;
  for (const char c : line_json(object)) {
    if (c == '<')
      out += "\\u003c";
    else
      out += c;
  }
  return out;
}

std::string title(std::span<const ReportRun> runs) {
  if (runs.size() == 1) return runs[0].result.name;
  bool same = true;
  for (const ReportRun& r : runs) same &= r.result.name == runs[0].result.name;
  return same ? fmt::format("{}: {} strategies", runs[0].result.name, runs.size())
              : fmt::format("{} runs", runs.size());
}

}  // namespace

std::string to_html(std::span<const ReportRun> runs, std::vector<std::string>& notes) {
  std::vector<results::RunResult> results;
  for (const ReportRun& r : runs) results.push_back(r.result);
  const std::string name = html(title(runs));
  std::string out =
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
      "<link rel=\"icon\" href=\"data:,\">\n";
  out += fmt::format("<title>{} - mllmsim</title>\n<style>\n{}</style>\n</head>\n<body>\n", name,
                     kReportStyle);
  out += fmt::format(
      "<a class=\"skip\" href=\"#summary\">Skip to the summary</a>\n"
      "<header><h1>{}</h1><button id=\"theme\" type=\"button\">Dark</button></header>\n<main>\n"
      "<nav aria-label=\"Sections\"><ul><li><a href=\"#summary\">Summary</a></li>"
      "<li><a href=\"#time\">Where time goes</a></li>"
      "<li><a href=\"#timeline-section\">Timeline</a></li>"
      "<li><a href=\"#pictures\">Pictures</a></li><li><a href=\"#plan\">Plan</a></li>"
      "<li><a href=\"#assumptions\">Assumptions</a></li>"
      "<li><a href=\"#reproduce\">How to reproduce</a></li></ul></nav>\n",
      name);
  out += summary_section(runs) + time_section(runs) + timeline_section() +
         pictures_section(runs, notes) + plan_section(runs) + assumptions_section(runs) +
         reproduce_section(runs);
  out += fmt::format(
      "</main>\n<footer>Simulated, not measured. Written by mllmsim {}.</footer>\n"
      "<div id=\"tip\" role=\"tooltip\" hidden></div>\n"
      "<script type=\"application/json\" id=\"data\">{}</script>\n<script>\n{}</script>\n"
      "</body>\n</html>\n",
      results::version(), embedded(timeline_data(results)), kReportScript);
  return out;
}

}  // namespace mllmsim::report
