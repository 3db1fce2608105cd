// JSON that people read: short values on one line, long ones indented, numbers with six digits.
#pragma once

#include <boost/json.hpp>
#include <string>

namespace mllmsim {

std::string pretty_json(const boost::json::value& value);  // ends with a newline
std::string line_json(const boost::json::value& value);    // on one line, without newline

}  // namespace mllmsim
