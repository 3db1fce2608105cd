// The style and scripts of reports, built into the program.
#pragma once

#include <string_view>

namespace mllmsim::report {

extern const std::string_view kReportStyle, kReportScript, kSweepScript;

}  // namespace mllmsim::report
