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

constexpr std::array<Traffic, 2> kTwoCopies = {kBf16 + kBf16, kBf16 + kBf16};

void flash(KernelList& list, const Block& b, const TokenBatch& batch, bool backward) {
  if (b.shape.cross_attention)
    return list.attention(
        backward ? "cross-attention backward" : "cross-attention",
        {batch.groups, b.shard.heads, b.shard.kv_heads, b.shard.even_head_dim(), false, backward,
         b.setting.software.flash_attention_generation, 0, true});
  list.attention(backward ? "attention backward" : "attention",
                 {chunked(batch, b.shape.attention_chunk_size), b.shard.heads, b.shard.kv_heads,
                  b.shard.even_head_dim(), b.shape.causal, backward,
                  b.setting.software.flash_attention_generation, b.shape.sliding_window, false,
                  b.shard.wide_keys()});
}

// Of q, k and v.
std::int64_t qkv_values(const Block& b, const TokenBatch& batch) {
  const std::int64_t tokens = b.setting.local_tokens(batch);
  if (!b.shape.cross_attention) return tokens * b.shard.qkv();
  return tokens * b.shard.q() + b.keys(batch) * b.shard.key_value();
}

bool masked(const Block& b) { return b.shape.causal && !b.shape.cross_attention; }

void softmax_forward(KernelList& list, const Block& b, std::int64_t rows, std::int64_t length) {
  if (fused_softmax(b, rows, length)) {
    list.memory("softmax", MemoryOp::softmax, rows, length,
                (masked(b) ? kBf16 / 2 : kBf16) + kBf16);
    return;
  }
  list.elementwise("scores to fp32", rows * length, as_cast(kBf16 + kFp32));
  if (masked(b)) list.elementwise("mask", rows * length, kFp32 + kMask + kFp32);
  list.memory("softmax", MemoryOp::softmax, rows, length, kFp32 + kFp32);
  list.elementwise("probabilities to bf16", rows * length, as_cast(kFp32 + kBf16));
}

void softmax_backward(KernelList& list, const Block& b, std::int64_t rows, std::int64_t length) {
  if (fused_softmax(b, rows, length)) {
    list.memory("softmax backward", MemoryOp::softmax, rows, length,
                (masked(b) ? kBf16 : 2 * kBf16) + kBf16);
    return;
  }
  list.elementwise("probability gradient to fp32", rows * length, as_cast(kBf16 + kFp32));
  list.memory("softmax backward", MemoryOp::softmax, rows, length, kFp32 + kFp32 + kFp32);
  if (masked(b)) list.elementwise("mask backward", rows * length, kFp32 + kMask + kFp32);
  list.elementwise("score gradient to bf16", rows * length, as_cast(kFp32 + kBf16));
}

std::int64_t keys_of(const Block& b, const SequenceGroup& g) {
  return b.shape.cross_attention ? g.cross_keys : g.length;
}

void unfused_forward(KernelList& list, const Block& b, const SequenceGroup& g) {
  const std::int64_t s = g.length, d = b.shard.even_head_dim(), batch = g.count * b.shard.heads;
  const std::int64_t k = keys_of(b, g);
  if (k == 0) return;
  list.gemm("scores", {s, k, d, GemmPass::forward, batch});
  softmax_forward(list, b, batch * s, k);
  if (b.setting.software.dropout)
    list.elementwise("attention dropout", batch * s * k, kBf16 + kBf16 + kMask);
  list.gemm("context", {s, d, k, GemmPass::forward, batch});
}

void unfused_backward(KernelList& list, const Block& b, const SequenceGroup& g) {
  const std::int64_t s = g.length, d = b.shard.even_head_dim(), batch = g.count * b.shard.heads;
  const std::int64_t k = keys_of(b, g);
  if (k == 0) return;
  list.gemm("probability gradient", {s, k, d, GemmPass::input_gradient, batch});
  list.gemm("value gradient", {k, d, s, GemmPass::input_gradient, batch});
  if (b.setting.software.dropout)
    list.elementwise("attention dropout backward", batch * s * k, kBf16 + kBf16 + kMask);
  softmax_backward(list, b, batch * s, k);
  list.gemm("query gradient", {s, d, k, GemmPass::input_gradient, batch});
  list.gemm("key gradient", {k, d, s, GemmPass::input_gradient, batch});
}

}  // namespace

bool fused_softmax(const Block& b, std::int64_t rows, std::int64_t length) {
  const Software& software = b.setting.software;
  return software.fused_kernels && length <= software.fused_softmax_longest_row &&
         rows / length % software.fused_softmax_matrices == 0;
}

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
  if (!b.shape.has_mixer) return {};
  if (b.shape.recurrence) {
    recurrence_forward(list, b, batch);
    return list.take();
  }
  if (b.setting.software.flash_attention) {
    // q, k and v out of the joint tensor and into the layout of the kernel, then stacked, and its
    // output back; unless the kernel takes strided views.
    const bool copies = !b.setting.software.fused_kernels && !b.setting.software.strided_attention;
    if (copies) list.elementwise("qkv layout", qkv_values(b, batch), kTwoCopies);
    if (b.setting.cp() > 1)
      context_parallel_forward(list, b, batch);
    else
      flash(list, b, batch, false);
    if (copies) list.elementwise("context layout", tokens * b.shard.context(), kBf16 + kBf16);
    return list.take();
  }
  const std::int64_t keys = b.shape.cross_attention ? b.keys(batch) : tokens;
  if (b.shard.kv_heads < b.shard.heads)
    list.elementwise("repeat key and value", 2 * keys * b.shard.q(), kBf16 + kBf16);
  for (const SequenceGroup& g : chunked(batch, b.shape.attention_chunk_size))
    unfused_forward(list, b, g);
  list.elementwise("context copy", tokens * b.shard.context(), kBf16 + kBf16);
  return list.take();
}

std::vector<TimedKernel> attention_backward(const Block& b, const TokenBatch& batch) {
  KernelList list(b.setting);
  if (!b.setting.has_backward() || !b.shape.has_mixer) return {};
  const std::int64_t tokens = b.setting.local_tokens(batch);
  if (b.shape.recurrence) {
    recurrence_backward(list, b, batch);
    return list.take();
  }
  if (b.setting.software.flash_attention) {
    const bool copies = !b.setting.software.fused_kernels && !b.setting.software.strided_attention;
    if (copies)
      list.elementwise("context layout backward", tokens * b.shard.context(), kBf16 + kBf16);
    if (b.setting.cp() > 1)
      context_parallel_backward(list, b, batch);
    else
      flash(list, b, batch, true);
    if (copies) list.elementwise("qkv layout backward", qkv_values(b, batch), kTwoCopies);
    return list.take();
  }
  const std::int64_t keys = b.shape.cross_attention ? b.keys(batch) : tokens;
  for (const SequenceGroup& g : chunked(batch, b.shape.attention_chunk_size))
    unfused_backward(list, b, g);
  // The scores' 1/sqrt(head_dim) is part of the forward GEMM but not of its two backward ones.
  list.elementwise("scale query and key gradients", (tokens + keys) * b.shard.q(), kBf16 + kBf16);
  if (b.shard.kv_heads < b.shard.heads)
    list.elementwise("sum key and value gradients", 2 * keys * b.shard.q(), kBf16);
  return list.take();
}

}  // namespace mllmsim::costs
