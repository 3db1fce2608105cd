#include "strategies/optimus/kernel_order.hpp"

#include <algorithm>

namespace mllmsim::optimus {
namespace {

struct Kernel {
  Time start;
  std::uint32_t pass;
};

std::vector<Kernel> by_start(const std::vector<const PlacedPass*>& passes) {
  std::vector<Kernel> kernels;
  for (std::uint32_t p = 0; p < passes.size(); ++p)
    for (const Gap& k : passes[p]->kernels) kernels.push_back({k.from, p});
  std::stable_sort(kernels.begin(), kernels.end(),
                   [](const Kernel& a, const Kernel& b) { return a.start < b.start; });
  return kernels;
}

}  // namespace

EncoderRank order_of(const RankTimeline& llm, const std::vector<const PlacedPass*>& passes) {
  EncoderRank out;
  for (const PlacedPass* p : passes) out.passes.push_back(p->pass);
  auto at = llm.kernels.begin();
  for (const Kernel& k : by_start(passes)) {
    const bool forward = passes[k.pass]->pass.forward;
    while (at != llm.kernels.end() && (at->start < k.start || (!forward && at->end <= k.start)))
      ++at;
    const bool after_all = at == llm.kernels.end();
    const EncoderSlot slot{k.pass, after_all ? llm.passes : at->pass, after_all ? 0 : at->kernel,
                           1};
    if (!out.slots.empty() && out.slots.back().pass == slot.pass &&
        out.slots.back().llm_pass == slot.llm_pass &&
        out.slots.back().llm_kernel == slot.llm_kernel)
      ++out.slots.back().kernels;
    else
      out.slots.push_back(slot);
  }
  return out;
}

}  // namespace mllmsim::optimus
