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
    const std::int64_t in = e.projector_sizes[i], width = e.projector_sizes[i + 1];
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

void pixel_shuffle(KernelList& list, const Encoder& e, std::int64_t tokens) {
  if (!shuffles(e)) return;
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
      activation_forward(list, s, false, e.projector_bias, tokens * linear.outputs);
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
      activation_backward(list, s, false, e.projector_bias, values);
    else if (e.projector_bias)
      bias_backward(list, s, values);
    linear_backward(list, s, linears[i], tokens);
  }
  if (e.projector_norm) norm_backward(list, s, Norm::layer_norm, tokens, e.projector_sizes.front());
  if (s.input_gradient) pixel_shuffle(list, e, tokens);
  return list.take();
}

}  // namespace

std::int64_t projected_tokens(const Encoder& e, const TokenBatch& batch) {
  return e.tokens_per_output_token > 0 ? batch.tokens() / e.tokens_per_output_token
                                       : batch.sequences() * e.output_tokens_per_tile;
}

LayerKernels projector_kernels(const LayerSetting& setting, const Encoder& e,
                               const TokenBatch& batch) {
  const std::int64_t tokens = projected_tokens(e, batch);
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
  return kernels;
}

}  // namespace mllmsim::costs
