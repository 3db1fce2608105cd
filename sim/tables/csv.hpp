// A table as comma-separated values (RFC 4180): a heading line, every digit of every number, text
// quoted where it must be. People open it in spreadsheets, which run text that begins with = + - @
// as a formula: such a cell gets an apostrophe in front, unless it is a number.
#pragma once

#include <string>

#include "sim/tables/parquet.hpp"

namespace mllmsim::tables {

std::string to_csv(const Table& table);

}  // namespace mllmsim::tables
