#include "cost_models/layers/end_kernels.hpp"
#include "cost_models/layers/pointwise_kernels.hpp"

namespace mllmsim::costs {
namespace {

// Cross entropy over logits split by vocabulary: each rank's maximum, target logit and sum of
// exponentials become global by an all-reduce of one fp32 value per token.
void cross_entropy_forward(KernelList& list, const LayerSetting& s, std::int64_t tokens,
                           std::int64_t vocabulary) {
  const auto pass = [&](std::string_view name, Traffic bytes_per_value) {
    list.memory(name, MemoryOp::cross_entropy, tokens, vocabulary, bytes_per_value);
  };
  const auto share = [&] { list.collective(CollectiveOp::all_reduce, Bytes{tokens * kFp32}); };
  if (s.software.fused_cross_entropy) {
    pass("sum of exponentials", kBf16);
    share();
    return pass("logits gradient", kBf16 + kBf16);
  }
  if (s.software.torch_cross_entropy) return pass("log softmax", kBf16 + kBf16);
  pass("logits to fp32", as_cast(kBf16 + kFp32));
  pass("logits maximum", kFp32);
  share();
  pass("subtract maximum", kFp32 + kFp32);
  share();
  pass("exponentials", kFp32 + kFp32);
  pass("sum of exponentials", kFp32);
  share();
  pass("normalise", kFp32 + kFp32);
}

void cross_entropy_backward(KernelList& list, const LayerSetting& s, std::int64_t tokens,
                            std::int64_t vocabulary) {
  if (s.software.fused_cross_entropy) return;
  if (s.software.torch_cross_entropy) {
    list.elementwise("zero loss gradient", tokens * vocabulary, kBf16);
    list.memory("log softmax backward", MemoryOp::cross_entropy_backward, tokens, vocabulary,
                kBf16 + kBf16 + kBf16);
    return;
  }
  list.memory("logits gradient", MemoryOp::cross_entropy, tokens, vocabulary, kFp32 + kFp32);
  list.memory("logits gradient to bf16", MemoryOp::cross_entropy, tokens, vocabulary,
              as_cast(kFp32 + kBf16));
}

}  // namespace

LayerKernels head_kernels(const LayerSetting& s, const Llm& llm, std::int64_t tokens) {
  const Transformer& t = llm.blocks;
  const std::int64_t vocabulary = s.vocabulary_shard(llm.vocab_size);
  const Linear logits{"logits", "logits input gradient", "logits weight gradient", t.hidden_size,
                      vocabulary};
  KernelList forward(s), backward(s);
  for (std::int64_t i = 0; i <= llm.num_nextn_predict_layers; ++i) {
    norm_forward(forward, s, t.norm, s.rows(tokens), t.hidden_size);
    column_forward(forward, s, logits, tokens);
    cross_entropy_forward(forward, s, tokens, vocabulary);
    if (!s.has_backward()) continue;
    cross_entropy_backward(backward, s, tokens, vocabulary);
    column_backward(backward, s, logits, tokens);
    norm_backward(backward, s, t.norm, s.rows(tokens), t.hidden_size);
  }
  return {forward.take(), backward.take()};
}

}  // namespace mllmsim::costs
