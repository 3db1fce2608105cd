#include "sim/account/back_to_back.hpp"

#include <algorithm>

namespace mllmsim {
namespace {

bool computes(const Kernel& k) { return !k.tp && !k.waits && k.kind != TaskKind::host; }

BackToBack back_to_back(std::span<const Kernel> kernels) {
  BackToBack out;
  const auto first = std::ranges::find_if(kernels, computes);
  if (first == kernels.end()) return out;
  std::size_t last = kernels.size() - 1;
  while (!computes(kernels[last])) --last;
  out.from = static_cast<std::uint32_t>(first - kernels.begin()) + 1;
  out.to = static_cast<std::uint32_t>(last) + 1;
  for (std::size_t i = out.from; i < out.to; ++i) {
    const Kernel& k = kernels[i];
    if (!k.tp && !computes(k)) return {};
    const Time end = out.total + k.duration;
    (k.tp ? out.tp_digest : out.compute_digest).add(k.kind, out.total, end);
    (k.tp ? out.tp : out.busy) += k.duration;
    if (k.tp) out.tp_end = end;
    out.total = end;
  }
  return out;
}

}  // namespace

const BackToBack* KnownRows::find(const KernelRange& row) {
  constexpr std::uint32_t kWorthIt = 6;
  if (row.count < kWorthIt) return nullptr;
  Known& known = known_[row.first];
  if (known.count != row.count) {
    known = {row.count, kNone};
    return nullptr;
  }
  if (known.place == kNone) {
    known.place = static_cast<std::uint32_t>(rows_.size());
    rows_.push_back(back_to_back(groups_.of(row)));
  }
  return &rows_[known.place];
}

}  // namespace mllmsim
