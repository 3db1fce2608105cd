#include "cost_models/layers/recompute.hpp"

#include <algorithm>

#include "cost_models/layers/pointwise_kernels.hpp"

namespace mllmsim::costs {

Rerun rerun_of(const Block& b, Recompute recompute) {
  Rerun r;
  if (recompute != Recompute::selective || !b.setting.has_backward()) return r;
  const Software& software = b.setting.software;
  const auto asked = [&](RecomputeModule m) { return software.recompute_modules.has(m); };
  const bool experts = b.shape.experts.num_experts > 0;
  const bool latent = static_cast<bool>(b.shape.latent);
  r.attention = b.shape.has_mixer && !b.shape.recurrence && asked(RecomputeModule::core_attn) &&
                (!software.flash_attention || software.recompute_flash_attention);
  r.input_norm = latent && asked(RecomputeModule::layernorm);
  r.up_projections = latent && asked(RecomputeModule::mla_up_proj);
  r.mlp_norm = experts && asked(RecomputeModule::layernorm);
  r.mlp = b.shape.has_mlp && !experts && asked(RecomputeModule::mlp);
  r.experts = experts && asked(RecomputeModule::moe);
  r.expert_activation = experts && asked(RecomputeModule::moe_act);
  r.shared_experts = experts && asked(RecomputeModule::shared_experts);
  return r;
}

std::size_t run_again(const Block& b, const std::vector<TimedKernel>& after_attention) {
  const Transformer& t = b.shape;
  // A residual's addition keeps nothing; what stands before it does, and so do adapters' products.
  const bool keeps = t.post_norms || t.layer_scale || t.gated_branches || t.drop_path ||
                     b.setting.software.dropout || (t.adapters.lora_rank > 0 && t.adapters.down) ||
                     t.experts.num_experts > 0;
  if (!b.setting.software.recompute_early_stop || keeps) return after_attention.size();
  const auto down = std::find_if(after_attention.begin(), after_attention.end(),
                                 [](const TimedKernel& k) { return k.name == kMlpDown; });
  return static_cast<std::size_t>(down - after_attention.begin());
}

std::vector<TimedKernel> rerun_kernels(const Block& b, std::int64_t tokens) {
  const Rerun r = rerun_of(b, Recompute::selective);
  const LayerSetting& s = b.setting;
  KernelList list(s);
  const auto norm = [&] {
    norm_forward(list, s, b.shape.norm, s.rows(tokens), b.shape.hidden_size);
  };
  if (r.mlp_norm || r.mlp) norm();
  if (r.mlp) mlp_forward(list, b, tokens);
  if (r.experts) experts_forward(list, b, tokens);
  if (r.shared_experts) shared_experts_forward(list, b, tokens);
  if (r.expert_activation) expert_activation_forward(list, b, tokens);
  if (r.input_norm) norm();
  if (r.up_projections) latent_up_forward(list, b, tokens);
  return list.take();
}

}  // namespace mllmsim::costs
