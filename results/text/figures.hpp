// Figures as people read them: rounded, with units where they are not in a heading.
#pragma once

#include <string>

#include "sim/base/units.hpp"

namespace mllmsim::results {

std::string gib(Bytes used, Bytes limit);  // "61.2 of 80.0", in GiB
std::string percent(double share);         // "12.3%"
std::string figure(double value);          // at least four digits, no exponent: "0.8452", "12345"
std::string money(double value);           // "12,345", "12.35": no currency
std::string duration(double days);         // "12.3 days", "3.2 hours", "5.0 minutes"
std::string count(double value);           // "25.5 B", "1.20 M", "960"

}  // namespace mllmsim::results
