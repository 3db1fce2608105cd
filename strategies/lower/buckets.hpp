// Layers whose parameters are gathered, and whose gradients are reduced, at once.
//
// Megatron closes a bucket as soon as it holds its size in trained parameters on one GPU
// (Software::bucket_parameters). So a bucket has at least that many, but for the last, and is cut
// only between layers.
#pragma once

#include <cstdint>
#include <vector>

namespace mllmsim::lower {

// Layers [from, to), in the order they were given.
struct Bucket {
  std::uint32_t from = 0, to = 0;
  std::int64_t parameters = 0;

  bool operator==(const Bucket&) const = default;
};

// `parameters`: the trained ones of each layer on one GPU; `full`: those of a full bucket.
std::vector<Bucket> buckets(const std::vector<std::int64_t>& parameters, std::int64_t full);

}  // namespace mllmsim::lower
