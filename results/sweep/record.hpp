// A finished point as bytes, exactly: fields follow run_fields.hpp, numbers keep every bit.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "results/run/run_result.hpp"

namespace mllmsim::sweep {

std::string encode(const std::string& key, const results::RunResult& run);

struct DecodedRecord {
  std::string key;
  results::RunResult run;
};
// Null if the bytes are not a whole record.
std::optional<DecodedRecord> decode(std::string_view bytes);

// A hash of the names and types of all fields, in order.
std::uint64_t record_layout();

}  // namespace mllmsim::sweep
