#include "strategies/lower/buckets.hpp"

namespace mllmsim::lower {

std::vector<Bucket> buckets(const std::vector<std::int64_t>& parameters, std::int64_t full) {
  std::vector<Bucket> out;
  for (std::uint32_t i = 0; i < parameters.size(); ++i) {
    if (out.empty() || out.back().parameters >= full) out.push_back({i, i, 0});
    out.back().to = i + 1;
    out.back().parameters += parameters[i];
  }
  return out;
}

}  // namespace mllmsim::lower
