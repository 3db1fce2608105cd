// Figures as people read them: rounded, with units where they are not in a heading.
#pragma once

#include <string>

#include "sim/base/units.hpp"

namespace mllmsim::results {

std::string gib(Bytes used, Bytes limit);  // "61.2 of 80.0", in GiB
std::string percent(double share);         // "12.3%"
std::string figure(double value);          // at least four digits, no exponent: "0.8452", "12345"
std::string money(double value);           // "12,345", "12.35": no currency
std::string duration(double days);         // "12.3 days", "3.2 hours", "5.0 minutes", ...
std::string count(double value);           // "25.5 B", "1.20 M", "960"

// Of a sweep: "12 points: 8 fit, 3 do not fit in memory, 1 cannot be planned"; and what pictures of
// it leave out, "3 points do not fit in memory, 1 cannot be planned", or nothing.
std::string points_text(std::size_t fit, std::size_t misfits, std::size_t unplanned);
std::string left_out_text(std::size_t misfits, std::size_t unplanned);

}  // namespace mllmsim::results
