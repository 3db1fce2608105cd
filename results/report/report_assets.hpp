// The style and script of a report, built into the program.
#pragma once

#include <string_view>

namespace mllmsim::report {

extern const std::string_view kReportStyle, kReportScript;

}  // namespace mllmsim::report
