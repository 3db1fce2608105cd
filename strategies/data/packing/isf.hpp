// ISF, iterative sampling and filtering (OmniBal, arXiv 2407.20761).
//
// A round shuffles the pool and fills packs in that order, closing one when the next sample would
// pass Q_v tiles or Q_t tokens. A pack with just Q'_v tiles, or whose tokens reach Q'_t, is kept;
// the samples of the others go back to the pool. After the last round what is left is packed once
// more and kept as it falls.
#pragma once

#include <optional>

#include "strategies/data/packing/packing.hpp"

namespace mllmsim::data {

struct IsfOptions {
  PackLimits limits{};
  std::optional<PackLimits> keep{};  // Q'_v and Q'_t; default_keep() if not given
  int rounds = 50;  // as the authors' public script; the paper has 10, stable after 5
  std::uint64_t seed = 1;
};

// The paper's thresholds: (Q_v, Q_t - 128).
PackLimits default_keep(const PackLimits& limits);

Packing pack_isf(std::span<const Sample> samples, const IsfOptions& options);

}  // namespace mllmsim::data
