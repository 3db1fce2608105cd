#include <algorithm>

#include "cost_models/layers/block_kernels.hpp"
#include "cost_models/layers/end_kernels.hpp"
#include "cost_models/layers/pointwise_kernels.hpp"

namespace mllmsim::costs {
namespace {

enum class Split : std::uint8_t { column, row, whole };

struct ProjectorLinear {
  Linear linear;
  Split split;
};

std::vector<ProjectorLinear> linears_of(const LayerSetting& s, const Encoder& e) {
  std::vector<ProjectorLinear> out;
  const std::size_t count = e.projector_sizes.size() - 1;
  for (std::size_t i = 0; i < count; ++i) {
    const Split split = i % 2 == 1 ? Split::row : i + 1 < count ? Split::column : Split::whole;
    const std::int64_t in = e.projector_sizes[i];
    const std::int64_t width = e.projector_sizes[i + 1] * (gates(e, i) ? 2 : 1);
    out.push_back({{"projector", "projector input gradient", "projector weight gradient",
                    split == Split::row ? ceil_div(in, s.tp()) : in,
                    split == Split::column ? ceil_div(width, s.tp()) : width},
                   split});
  }
  return out;
}

bool shuffles(const Encoder& e) {
  return e.tokens_per_output_token > 1 || e.output_tokens_per_tile != e.tokens_per_tile;
}

// Fewer tokens, none of them wider.
bool pools(const Encoder& e) {
  return e.tokens_per_output_token == 0 && e.output_tokens_per_tile < e.tokens_per_tile - 1 &&
         e.projector_sizes.front() == e.blocks.hidden_size;
}

void pixel_shuffle(KernelList& list, const Encoder& e, std::int64_t tokens) {
  if (!shuffles(e) || (e.resampler && e.tokens_per_output_token == 0)) return;
  if (pools(e)) {
    const std::int64_t read = tokens / e.output_tokens_per_tile * e.tokens_per_tile;
    return list.elementwise("pooling", (read + tokens) * e.blocks.hidden_size, kBf16);
  }
  list.elementwise("pixel shuffle", tokens * e.projector_sizes.front(), kBf16 + kBf16);
  list.elementwise("pixel shuffle", tokens * e.projector_sizes.front(), kBf16 + kBf16);
}

void linear_backward(KernelList& list, const LayerSetting& s, const ProjectorLinear& p,
                     std::int64_t tokens) {
  switch (p.split) {
    case Split::column:
      return column_backward(list, s, p.linear, tokens);
    case Split::row:
      return row_backward(list, s, p.linear, tokens);
    case Split::whole:
      return whole_backward(list, s, p.linear, tokens);
  }
}

std::vector<TimedKernel> forward(const LayerSetting& s, const Encoder& e, std::int64_t tokens) {
  const std::vector<ProjectorLinear> linears = linears_of(s, e);
  KernelList list(s);
  pixel_shuffle(list, e, tokens);
  if (e.projector_norm) norm_forward(list, s, Norm::layer_norm, tokens, e.projector_sizes.front());
  for (std::size_t i = 0; i < linears.size(); ++i) {
    const auto& [linear, split] = linears[i];
    if (split == Split::row)
      row_forward(list, s, linear, tokens);
    else
      whole_forward(list, s, linear, tokens);
    if (i + 1 < linears.size())
      activation_forward(list, s, gates(e, i), e.projector_bias,
                         tokens * linear.outputs / (gates(e, i) ? 2 : 1));
    else if (e.projector_bias)
      bias_forward(list, tokens * linear.outputs);
  }
  return list.take();
}

std::vector<TimedKernel> backward(const LayerSetting& s, const Encoder& e, std::int64_t tokens) {
  const std::vector<ProjectorLinear> linears = linears_of(s, e);
  KernelList list(s);
  for (std::size_t i = linears.size(); i-- > 0;) {
    const std::int64_t values = tokens * linears[i].linear.outputs;
    if (i + 1 < linears.size())
      activation_backward(list, s, gates(e, i), e.projector_bias, values / (gates(e, i) ? 2 : 1));
    else if (e.projector_bias)
      bias_backward(list, s, values);
    linear_backward(list, s, linears[i], tokens);
  }
  if (e.projector_norm) norm_backward(list, s, Norm::layer_norm, tokens, e.projector_sizes.front());
  if (s.input_gradient) pixel_shuffle(list, e, tokens);
  return list.take();
}

void add_all(std::vector<TimedKernel>& to, const std::vector<TimedKernel>& from) {
  to.insert(to.end(), from.begin(), from.end());
}

// Blocks of cross-attention, each with a norm of its keys, then one of the latents.
void add_resampler(LayerKernels& kernels, const LayerSetting& projector, const Encoder& e,
                   const TokenBatch& batch) {
  const LayerSetting s = resampler_setting(projector);
  const Block block(e.resampler.blocks, s);
  const TokenBatch latents = latents_of(e, batch);
  const std::int64_t h = block.shape.hidden_size, keys = latents.cross_keys();
  const BlockParts parts = block_parts(block, latents.tokens(), keys);
  KernelList key_norm(s), key_norm_backward(s), end(s), end_backward(s);
  norm_forward(key_norm, s, block.shape.norm, keys, h);
  norm_forward(end, s, block.shape.norm, latents.tokens(), h);
  if (s.has_backward()) {
    norm_backward(key_norm_backward, s, block.shape.norm, keys, h);
    norm_backward(end_backward, s, block.shape.norm, latents.tokens(), h);
  }
  const auto norm = key_norm.take(), norm_gradient = key_norm_backward.take();
  std::vector<TimedKernel> backward = end_backward.take();
  for (std::int64_t i = 0; i < block.shape.num_hidden_layers; ++i) {
    add_all(kernels.forward, norm);
    add_all(kernels.forward, parts.before_attention);
    add_all(kernels.forward, attention_forward(block, latents));
    add_all(kernels.forward, parts.after_attention);
    add_all(backward, parts.backward_after);
    add_all(backward, attention_backward(block, latents));
    add_all(backward, parts.backward_before);
    add_all(backward, norm_gradient);
  }
  add_all(kernels.forward, end.take());
  kernels.backward.insert(kernels.backward.begin(), backward.begin(), backward.end());
}

}  // namespace

std::int64_t projected_width(const Encoder& e) {
  return e.projector_sizes.empty() ? e.blocks.hidden_size : e.projector_sizes.back();
}

std::int64_t projected_tokens(const Encoder& e, const TokenBatch& batch) {
  return image_tokens_of(e, batch.sequences(), batch.tokens());
}

std::int64_t projector_rows(const Encoder& e, const TokenBatch& batch) {
  if (!e.resampler) return projected_tokens(e, batch);
  return batch.tokens() / std::max<std::int64_t>(1, e.tokens_per_output_token);
}

TokenBatch latents_of(const Encoder& e, const TokenBatch& batch) {
  const Resampler& r = e.resampler;
  TokenBatch out;
  for (const SequenceGroup& g : batch.groups)
    out.groups.push_back({r.latents, g.count,
                          g.length / std::max<std::int64_t>(1, e.tokens_per_output_token) +
                              (r.sees_latents ? r.latents : 0)});
  return out;
}

LayerSetting resampler_setting(const LayerSetting& projector) {
  LayerSetting s = projector;
  s.tp_group = {};
  s.sequence_parallel = false;
  s.image_gradient = s.has_backward();
  return s;
}

LayerKernels projector_kernels(const LayerSetting& setting, const Encoder& e,
                               const TokenBatch& batch) {
  const std::int64_t tokens = projector_rows(e, batch);
  LayerSetting s = setting;
  s.sequence_parallel = false;

  KernelList gather(s);
  if (setting.sequence_parallel)
    gather.collective(CollectiveOp::all_gather,
                      s.activation(batch.tokens() * e.blocks.hidden_size));
  LayerKernels kernels{gather.take(), {}};
  if (e.projector_sizes.size() < 2) return kernels;
  const auto repeat = [&](std::vector<TimedKernel>& to, const std::vector<TimedKernel>& one) {
    for (std::int64_t i = 0; i <= e.deepstack_features; ++i)
      to.insert(to.end(), one.begin(), one.end());
  };
  repeat(kernels.forward, forward(s, e, tokens));
  if (s.has_backward()) repeat(kernels.backward, backward(s, e, tokens));
  if (e.resampler) add_resampler(kernels, s, e, batch);
  return kernels;
}

}  // namespace mllmsim::costs
