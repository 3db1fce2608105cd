// The attention of a block; see block_kernels.hpp. Bytes per value below are those of one entry of
// the scores, [sequences, heads, length, length].
//
// Causal: Megatron's fused softmax reads only the lower triangle (half the bytes) but writes whole
// rows; its GEMMs compute the whole square, as eager PyTorch does.
#include "cost_models/layers/block_kernels.hpp"

#include <array>

#include "cost_models/layers/context_parallel.hpp"

namespace mllmsim::costs {
namespace {

constexpr std::array<std::int64_t, 2> kTwoCopies = {kBf16 + kBf16, kBf16 + kBf16};

void flash(KernelList& list, const Block& b, const TokenBatch& batch, bool backward) {
  list.attention(backward ? "attention backward" : "attention",
                 {chunked(batch, b.shape.attention_chunk_size), b.shard.heads, b.shard.kv_heads,
                  b.shard.even_head_dim(), b.shape.causal, backward,
                  b.setting.software.flash_attention_generation, b.shape.sliding_window});
}

bool fused_softmax(const Block& b, std::int64_t rows, std::int64_t length) {
  const Software& software = b.setting.software;
  return software.fused_kernels && length <= software.fused_softmax_longest_row &&
         rows / length % software.fused_softmax_matrices == 0;
}

void softmax_forward(KernelList& list, const Block& b, std::int64_t rows, std::int64_t length) {
  if (fused_softmax(b, rows, length)) {
    list.memory("softmax", MemoryOp::softmax, rows, length,
                (b.shape.causal ? kBf16 / 2 : kBf16) + kBf16);
    return;
  }
  list.elementwise("scores to fp32", rows * length, kBf16 + kFp32);
  if (b.shape.causal) list.elementwise("mask", rows * length, kFp32 + kMask + kFp32);
  list.memory("softmax", MemoryOp::softmax, rows, length, kFp32 + kFp32);
  list.elementwise("probabilities to bf16", rows * length, kFp32 + kBf16);
}

void softmax_backward(KernelList& list, const Block& b, std::int64_t rows, std::int64_t length) {
  if (fused_softmax(b, rows, length)) {
    list.memory("softmax backward", MemoryOp::softmax, rows, length,
                (b.shape.causal ? kBf16 : 2 * kBf16) + kBf16);
    return;
  }
  list.elementwise("probability gradient to fp32", rows * length, kBf16 + kFp32);
  list.memory("softmax backward", MemoryOp::softmax, rows, length, kFp32 + kFp32 + kFp32);
  if (b.shape.causal) list.elementwise("mask backward", rows * length, kFp32 + kMask + kFp32);
  list.elementwise("score gradient to bf16", rows * length, kFp32 + kBf16);
}

void unfused_forward(KernelList& list, const Block& b, const SequenceGroup& g) {
  const std::int64_t s = g.length, d = b.shard.even_head_dim(), batch = g.count * b.shard.heads;
  list.gemm("scores", {s, s, d, GemmPass::forward, batch});
  softmax_forward(list, b, batch * s, s);
  if (b.setting.software.dropout)
    list.elementwise("attention dropout", batch * s * s, kBf16 + kBf16 + kMask);
  list.gemm("context", {s, d, s, GemmPass::forward, batch});
}

void unfused_backward(KernelList& list, const Block& b, const SequenceGroup& g) {
  const std::int64_t s = g.length, d = b.shard.even_head_dim(), batch = g.count * b.shard.heads;
  list.gemm("probability gradient", {s, s, d, GemmPass::input_gradient, batch});
  list.gemm("value gradient", {s, d, s, GemmPass::input_gradient, batch});
  if (b.setting.software.dropout)
    list.elementwise("attention dropout backward", batch * s * s, kBf16 + kBf16 + kMask);
  softmax_backward(list, b, batch * s, s);
  list.gemm("query gradient", {s, d, s, GemmPass::input_gradient, batch});
  list.gemm("key gradient", {s, d, s, GemmPass::input_gradient, batch});
}

}  // namespace

std::vector<SequenceGroup> chunked(const TokenBatch& batch, std::int64_t chunk) {
  if (chunk == 0) return batch.groups;
  std::vector<SequenceGroup> out;
  std::int64_t whole = 0;
  for (const SequenceGroup& g : batch.groups) {
    whole += g.count * (g.length / chunk);
    if (g.length % chunk > 0) out.push_back({g.length % chunk, g.count});
  }
  if (whole > 0) out.push_back({chunk, whole});
  return out;
}

std::vector<TimedKernel> attention_forward(const Block& b, const TokenBatch& batch) {
  KernelList list(b.setting);
  const std::int64_t tokens = b.setting.local_tokens(batch);
  if (b.setting.software.flash_attention) {
    // q, k and v out of the joint tensor and into the layout of the kernel, then stacked, and its
    // output back; unless the kernel takes strided views.
    const bool copies = !b.setting.software.fused_kernels;
    if (copies) list.elementwise("qkv layout", tokens * b.shard.qkv(), kTwoCopies);
    if (b.setting.cp() > 1)
      context_parallel_forward(list, b, batch);
    else
      flash(list, b, batch, false);
    if (copies) list.elementwise("context layout", tokens * b.shard.context(), kBf16 + kBf16);
    return list.take();
  }
  if (b.shard.kv_heads < b.shard.heads)
    list.elementwise("repeat key and value", 2 * tokens * b.shard.q(), kBf16 + kBf16);
  for (const SequenceGroup& g : chunked(batch, b.shape.attention_chunk_size))
    unfused_forward(list, b, g);
  list.elementwise("context copy", tokens * b.shard.context(), kBf16 + kBf16);
  return list.take();
}

std::vector<TimedKernel> attention_backward(const Block& b, const TokenBatch& batch) {
  KernelList list(b.setting);
  if (!b.setting.has_backward()) return {};
  const std::int64_t tokens = b.setting.local_tokens(batch);
  if (b.setting.software.flash_attention) {
    const bool copies = !b.setting.software.fused_kernels;
    if (copies)
      list.elementwise("context layout backward", tokens * b.shard.context(), kBf16 + kBf16);
    if (b.setting.cp() > 1)
      context_parallel_backward(list, b, batch);
    else
      flash(list, b, batch, true);
    if (copies) list.elementwise("qkv layout backward", tokens * b.shard.qkv(), kTwoCopies);
    return list.take();
  }
  for (const SequenceGroup& g : chunked(batch, b.shape.attention_chunk_size))
    unfused_backward(list, b, g);
  // The scores' 1/sqrt(head_dim) is part of the forward GEMM but not of its two backward ones.
  list.elementwise("scale query and key gradients", 2 * tokens * b.shard.q(), kBf16 + kBf16);
  if (b.shard.kv_heads < b.shard.heads)
    list.elementwise("sum key and value gradients", 2 * tokens * b.shard.q(), kBf16);
  return list.take();
}

}  // namespace mllmsim::costs
