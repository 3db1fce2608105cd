// Text in HTML, and what pages have in common.
#pragma once

#include <boost/json/fwd.hpp>
#include <string>
#include <string_view>

#include "results/run/run_result.hpp"

namespace mllmsim::report {

inline std::string html(std::string_view text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      default:
        out += c;
    }
  }
  return out;
}

inline std::string cell(const std::string& text) { return "<td>" + text + "</td>"; }

// What a run is called in a page.
inline std::string label(const results::RunResult& run) {
  return html(run.name + " (" + run.strategy + ")");
}

// The start of a page up to <main>, and its end from </main> on, with data that its script reads.
std::string page_start(const std::string& title, const std::string& navigation);
std::string page_end(const boost::json::object& data, std::string_view script);

}  // namespace mllmsim::report
