// A recurrence in attention's place on one rank, as Megatron-Core runs it (megatron/core/ssm): one
// matrix split by columns, a convolution, the recurrence in chunks, a norm with a gate, and the
// output's matrix, split by rows. Heads are split over tp ranks, and over cp ranks by all-to-all
// before and after, so that each has whole sequences.
//
// Per token, with K key values and V values of a head, chunks of C tokens, and 2 bytes per value:
//
//   gated delta rule   flash-linear-attention's chunk_gated_delta_rule (Triton); queries and keys
//                      are repeated for every value head first
//     forward   k k^T, w and u, states (2), output (3)      2 C (3 K + 2 V) + 6 K V  FLOPs
//               of which from chunk to chunk: states        4 K V
//     backward  w, u and states again; gradients of         2 C (8 K + 5 V) + 16 K V
//               v, states, q, k, w, decay; of w and u       10 K V in two passes over chunks
//   Mamba-2            mamba_split_conv1d_scan_combined (Triton): states of all chunks are made at
//                      once, passing them on is element-wise; C B^T for every group of heads
//     forward   states, their output, within chunks         4 K V + C V, and 2 C K for each group
//     backward  states again; gradients of all              10 K V + 3 C V, and 6 C K
//
// Bytes are those of each kernel's inputs and outputs, states of chunks in bf16 (in fp32 before
// they are passed on in Mamba-2). What a backward needs is kept, w, u and states aside.
#include <algorithm>

#include "cost_models/layers/block_kernels.hpp"
#include "cost_models/layers/pointwise_kernels.hpp"

namespace mllmsim::costs {
namespace {

struct PerToken {
  std::int64_t products = 0, stepwise = 0, bytes = 0;
};

PerToken delta_forward(std::int64_t k, std::int64_t v, std::int64_t c) {
  return {2 * c * (3 * k + 2 * v) + 6 * k * v, 4 * k * v, 12 * c + 14 * k + 12 * v + 4 * k * v / c};
}
PerToken delta_backward(std::int64_t k, std::int64_t v, std::int64_t c) {
  return {2 * c * (8 * k + 5 * v) + 16 * k * v, 10 * k * v,
          4 * c + 42 * k + 30 * v + 8 * k * v / c};
}
// Of a head, and of a group of them.
PerToken mamba_forward(std::int64_t k, std::int64_t v, std::int64_t c) {
  return {4 * k * v + c * v, 0, 10 * v + 12 * k * v / c};
}
PerToken mamba_backward(std::int64_t k, std::int64_t v, std::int64_t c) {
  return {10 * k * v + 3 * c * v, 0, 32 * v + 34 * k * v / c};
}
PerToken mamba_group(std::int64_t k, std::int64_t c, bool backward) {
  return {(backward ? 6 : 2) * c * k, 0, (backward ? 16 : 8) * k + (backward ? 28 : 8) * c};
}

void add(ChunkedScan& scan, const PerToken& each, std::int64_t times) {
  scan.products += Flops{static_cast<double>(each.products) * static_cast<double>(times)};
  scan.stepwise += Flops{static_cast<double>(each.stepwise) * static_cast<double>(times)};
  scan.bytes += Bytes{each.bytes * times};
}

// One rank's heads over whole sequences.
void scan(KernelList& list, const Block& b, const TokenBatch& batch, bool backward) {
  const LayerSetting& s = b.setting;
  Recurrence r = b.shard.recurrence;
  r.num_value_heads = ceil_div(r.num_value_heads, s.cp());
  r.num_key_heads = ceil_div(r.num_key_heads, s.cp());
  list.chunked_scan(backward ? "recurrence backward" : "recurrence",
                    chunked_scan(r, batch, backward));
}

}  // namespace

ChunkedScan chunked_scan(const Recurrence& r, const TokenBatch& batch, bool backward) {
  const std::int64_t k = r.key_head_dim, v = r.value_head_dim, c = r.chunk_size;
  const std::int64_t tokens = batch.tokens();
  ChunkedScan out;
  out.backward = backward;
  if (r.delta()) {
    add(out, backward ? delta_backward(k, v, c) : delta_forward(k, v, c),
        tokens * r.num_value_heads);
    std::int64_t longest = 0;
    for (const SequenceGroup& g : batch.groups) longest = std::max(longest, g.length);
    out.steps = (backward ? 2 : 1) * ceil_div(longest, c);
  } else {
    out.mamba = true;
    add(out, backward ? mamba_backward(k, v, c) : mamba_forward(k, v, c),
        tokens * r.num_value_heads);
    add(out, mamba_group(k, c, backward), tokens * r.num_key_heads);
  }
  return out;
}

void recurrent_forward(KernelList& list, const Block& b, std::int64_t tokens) {
  const Recurrence& r = b.shard.recurrence;
  column_forward(list, b.setting, b.input(), tokens);
  list.elementwise("short convolution", tokens * r.convolved(), kBf16 + kBf16);
  if (!r.delta()) return;
  list.elementwise("query and key norm", tokens * 2 * r.keys(), kBf16 + kBf16);
  list.elementwise("repeat query and key", tokens * 2 * r.num_value_heads * r.key_head_dim,
                   kBf16 + kBf16);
  list.elementwise("value and gate layout", tokens * 2 * r.values(), kBf16 + kBf16);
  list.elementwise("decay", tokens * r.num_value_heads, kBf16 + kBf16 + kFp32 + kBf16);
}

void recurrent_backward(KernelList& list, const Block& b, std::int64_t tokens) {
  const Recurrence& r = b.shard.recurrence;
  if (r.delta()) {
    list.elementwise("decay backward", tokens * r.num_value_heads, kFp32 + kBf16 + kBf16 + kBf16);
    list.elementwise("sum query and key gradients", tokens * 2 * r.num_value_heads * r.key_head_dim,
                     kBf16 + kBf16);
    list.elementwise("query and key norm backward", tokens * 2 * r.keys(), kBf16 + kBf16 + kBf16);
  } else {
    list.elementwise("short convolution again", tokens * r.convolved(), kBf16 + kBf16);
  }
  list.elementwise("short convolution backward", tokens * r.convolved(), kBf16 + kBf16 + kBf16);
  if (r.delta())
    list.elementwise("projection gradient concat", tokens * r.projected(), kBf16 + kBf16);
  column_backward(list, b.setting, b.input(), tokens);
}

void gated_norm_forward(KernelList& list, const Block& b, std::int64_t tokens) {
  const Recurrence& r = b.shard.recurrence;
  if (r.delta())
    list.memory("gated norm", MemoryOp::norm, tokens * r.num_value_heads, r.value_head_dim,
                kBf16 + kBf16 + kBf16);
  else
    norm_forward(list, b.setting, Norm::rms_norm, tokens, r.values());
}

void gated_norm_backward(KernelList& list, const Block& b, std::int64_t tokens) {
  const Recurrence& r = b.shard.recurrence;
  if (r.delta())
    list.memory("gated norm backward", MemoryOp::norm_backward, tokens * r.num_value_heads,
                r.value_head_dim, kBf16 + kBf16 + kBf16 + kBf16 + kBf16);
  else
    norm_backward(list, b.setting, Norm::rms_norm, tokens, r.values());
}

void recurrence_forward(KernelList& list, const Block& b, const TokenBatch& batch) {
  const LayerSetting& s = b.setting;
  const std::int64_t tokens = s.local_tokens(batch);
  if (s.cp() > 1)
    list.cp_collective(s, CollectiveOp::all_to_all,
                       s.activation(tokens * b.shard.recurrence.projected()));
  scan(list, b, batch, false);
  if (s.cp() > 1)
    list.cp_collective(s, CollectiveOp::all_to_all,
                       s.activation(tokens * b.shard.recurrence.values()));
}

void recurrence_backward(KernelList& list, const Block& b, const TokenBatch& batch) {
  const LayerSetting& s = b.setting;
  const std::int64_t tokens = s.local_tokens(batch);
  if (s.cp() > 1)
    list.cp_collective(s, CollectiveOp::all_to_all,
                       s.activation(tokens * b.shard.recurrence.values()));
  scan(list, b, batch, true);
  if (s.cp() > 1)
    list.cp_collective(s, CollectiveOp::all_to_all,
                       s.activation(tokens * b.shard.recurrence.projected()));
}

}  // namespace mllmsim::costs
