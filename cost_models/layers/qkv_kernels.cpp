// Projections of a block's input to q, k and v: one matrix, or one for each where software keeps
// the modules of a model that has them apart. Then each gathers the input for itself with
// sequence parallelism, and three gradients of the input are added up; a joint matrix has the
// gradients of its three parts put together first.
#include "cost_models/layers/block_kernels.hpp"

namespace mllmsim::costs {
namespace {

// Adapters are counted as one beside a joint matrix (Adapters).
bool apart(const Block& b) {
  return !b.setting.software.joint_qkv && !b.shape.packed_qkv && b.shape.adapters.lora_rank == 0;
}

std::vector<Linear> projections(const Block& b) {
  if (!apart(b)) return {b.input()};
  const std::int64_t h = b.shape.hidden_size;
  return {{"query", "query input gradient", "query weight gradient", h,
           (b.shard.gate ? 2 : 1) * b.shard.q()},
          {"key", "key input gradient", "key weight gradient", h, b.shard.kv()},
          {"value", "value input gradient", "value weight gradient", h, b.shard.kv()}};
}

}  // namespace

Linear Block::input() const {
  const std::int64_t outputs = shard.recurrence ? shard.recurrence.projected() : shard.qkv();
  Linear linear{"qkv", "qkv input gradient", "qkv weight gradient", shape.hidden_size, outputs};
  linear.adapter_rank = shape.adapters.qkv ? shape.adapters.lora_rank : 0;
  linear.dora = shape.adapters.use_dora;
  return linear;
}

void qkv_forward(KernelList& list, const Block& b, std::int64_t tokens) {
  for (const Linear& linear : projections(b)) column_forward(list, b.setting, linear, tokens);
}

void qkv_backward(KernelList& list, const Block& b, std::int64_t tokens) {
  const LayerSetting& s = b.setting;
  const std::vector<Linear> linears = projections(b);
  if (linears.size() == 1)
    list.elementwise("qkv gradient concat", tokens * b.shard.qkv(), kBf16 + kBf16);
  for (std::size_t i = 0; i < linears.size(); ++i) {
    if (b.shard.whole_attention)
      gathered_backward(list, s, linears[i], tokens);
    else
      column_backward(list, s, linears[i], tokens);
    if (i > 0)
      list.elementwise("sum of input gradients", s.rows(tokens) * b.shape.hidden_size,
                       kBf16 + kBf16 + kBf16);
  }
}

}  // namespace mllmsim::costs
