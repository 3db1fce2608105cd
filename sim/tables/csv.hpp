// A table as comma-separated values (RFC 4180): a heading line, every digit of every number, text
// as csv_field() (sim/base/csv.hpp) writes it.
#pragma once

#include <string>

#include "sim/tables/parquet.hpp"

namespace mllmsim::tables {

std::string to_csv(const Table& table);

}  // namespace mllmsim::tables
