// Quantities as scenario files write them: a number and a unit, "200 Gb/s", "80 GiB", "5 ms".
//
// b is a bit and B a byte; k, M, G, T are powers of 1000 and Ki, Mi, Gi, Ti powers of 1024. Units
// are case-sensitive, since Gb/s and GB/s differ eightfold. A bare number is refused: whoever reads
// `nic_bandwidth = 200` cannot tell what it means.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace mllmsim::scenarios {

struct Unit {
  std::string_view name;
  double factor;  // to the dimension's base unit
};

struct Dimension {
  std::string_view noun;     // "a bandwidth"
  std::string_view example;  // "200 Gb/s"
  std::span<const Unit> units;
};

extern const Dimension kMemorySize;   // in bytes
extern const Dimension kBandwidth;    // in bytes per second
extern const Dimension kDuration;     // in seconds
extern const Dimension kComputeRate;  // in FLOP/s

struct ParsedQuantity {
  double value = 0;     // in the base unit; finite if there is no problem
  std::string problem;  // what was expected and what is wrong; empty if fine
};

ParsedQuantity parse_quantity(std::string_view text, const Dimension& dimension);

}  // namespace mllmsim::scenarios
