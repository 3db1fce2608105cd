// JSON that people read too: short values on one line, long ones indented, lines of at most 100
// characters where values allow it. Numbers have as many digits as it takes to read the same number
// back, or as many significant ones as the caller says; Boost.JSON would print 4.6E0. A number that
// is not finite is null.
//
// Large outputs (traces) are put together from json_text() and json_number() piece by piece.
#pragma once

#include <boost/json/fwd.hpp>
#include <string>
#include <string_view>

namespace mllmsim {

inline constexpr int kAllDigits = 0;

std::string json_text(std::string_view text);  // with quotes and escapes
std::string json_number(double value, int digits = kAllDigits);

// Ends with a newline.
std::string pretty_json(const boost::json::value& value, int digits = kAllDigits);
// On one line, without newline.
std::string line_json(const boost::json::value& value, int digits = kAllDigits);

}  // namespace mllmsim
