// What one rank holds of a layer, by the group that shares it: all but routed experts is the same
// on dp x cp ranks, experts are where their own groups put them (parallelism.hpp).
#pragma once

#include "sim/world/model.hpp"
#include "sim/world/parallelism.hpp"

namespace mllmsim {

struct RankParameters {
  std::int64_t dense = 0;    // all, where experts are not apart
  std::int64_t experts = 0;  // of routed experts that are

  std::int64_t all() const { return dense + experts; }
  RankParameters& operator+=(const RankParameters& other) {
    dense += other.dense;
    experts += other.experts;
    return *this;
  }
};

RankParameters rank_parameters(const Model& model, const Layer& layer, const Parallelism& p);
// Those that are trained: all, or the adapters, or none.
RankParameters trained_rank_parameters(const Model& model, const Layer& layer,
                                       const Parallelism& p);

}  // namespace mllmsim
