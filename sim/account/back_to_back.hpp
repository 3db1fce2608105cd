// Rows of kernels that nothing interrupts, in closed form. Private to this folder.
#pragma once

#include <span>
#include <vector>

#include "sim/account/event_digest.hpp"
#include "sim/kernel/kernel_groups.hpp"

namespace mllmsim {

// The kernels of a row from after its first compute kernel to its last: if its tp stream is free by
// then, each begins when the one before ends, and only collectives keep the compute stream waiting.
struct BackToBack {
  std::uint32_t from = 0, to = 0;
  Time total{}, busy{}, tp{};
  Time tp_end{};  // of the last collective; 0: there is none
  StreamDigest::Row compute_digest, tp_digest;
};

// By the first kernel of a row: nearly always a row is a layer, and most layers are alike.
class KnownRows {
 public:
  explicit KnownRows(const KernelGroups& groups) : groups_(groups), known_(groups.kernels()) {}

  // Nothing for a row that is seen for the first time, or that is short.
  const BackToBack* find(const KernelRange& row);

 private:
  static constexpr std::uint32_t kNone = UINT32_MAX;
  struct Known {
    std::uint32_t count = 0, place = kNone;
  };
  const KernelGroups& groups_;
  std::vector<Known> known_;
  std::vector<BackToBack> rows_;
};

}  // namespace mllmsim
