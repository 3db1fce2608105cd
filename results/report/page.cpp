#include <fmt/format.h>

#include <boost/json.hpp>

#include "results/report/html.hpp"
#include "results/report/report_assets.hpp"
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

}  // namespace

std::string page_start(const std::string& title, const std::string& navigation) {
  return fmt::format(
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
      "<link rel=\"icon\" href=\"data:,\">\n"
      "<title>{0} - mllmsim</title>\n<style>\n{1}</style>\n</head>\n<body>\n"
      "<a class=\"skip\" href=\"#answer\">Skip to the answer</a>\n"
      "<header><h1>{0}</h1><button id=\"theme\" type=\"button\">Dark</button></header>\n<main>\n"
      "<nav aria-label=\"Sections\"><ul>{2}</ul></nav>\n",
      html(title), kReportStyle, navigation);
}

std::string page_end(const boost::json::object& data, std::string_view script) {
  return fmt::format(
      "</main>\n<footer>Simulated, not measured. Written by mllmsim {}.</footer>\n"
      "<div id=\"tip\" role=\"tooltip\" hidden></div>\n"
      "<script type=\"application/json\" id=\"data\">{}</script>\n<script>\n{}</script>\n"
      "</body>\n</html>\n",
      results::version(), embedded(data), script);
}

}  // namespace mllmsim::report
