// Where a layer of LayerCosts stands: its groups of ranks, formats, and the tokens it sees.
#include <fmt/format.h>

#include <algorithm>

#include "cost_models/layers/end_kernels.hpp"
#include "cost_models/layers/layer_kernels.hpp"
#include "cost_models/layers/layer_memo.hpp"
#include "sim/base/errors.hpp"

namespace mllmsim::costs {
namespace {

// tp ranks are neighbours, so a group fills NVLink domains and no other tp group shares their NICs.
GroupShape tp_group_of(int tp, const ClusterSpec& cluster) {
  return {tp, static_cast<int>(ceil_div(tp, cluster.gpus_per_domain())), 1};
}

// cp ranks come after tp ranks, so the groups of a replica's tp ranks are side by side.
GroupShape cp_group_of(int tp, int cp, const ClusterSpec& cluster) {
  if (cp == 1) return {};
  return {cp,
          static_cast<int>(std::min<std::int64_t>(
              cp, ceil_div(std::int64_t{tp} * cp, cluster.gpus_per_domain()))),
          std::min(tp, cluster.gpus_per_domain())};
}

// Ranks at a distance of etp; the groups of etp ranks are side by side.
GroupShape expert_group_of(const Parallelism& p, const ClusterSpec& cluster) {
  const int ep = p.expert_model_parallel_size, etp = p.expert_tensor_ranks();
  const std::int64_t domain = cluster.gpus_per_domain();
  return {ep,
          static_cast<int>(std::min<std::int64_t>(ep, ceil_div(std::int64_t{ep} * etp, domain))),
          static_cast<int>(std::min<std::int64_t>(etp, domain))};
}

// Of a node's GPUs on one NIC, those of one tp group, which send at once.
int nic_sharers(int tp, const ClusterSpec& cluster) {
  return std::max(1, std::min(tp, cluster.gpus_per_node / std::max(1, cluster.nics_per_node)));
}

void check_format(const KernelCosts& kernels, NumberFormat format) {
  // Tensor cores that scale blocks of 32 are those that multiply fp4 too.
  if (format == NumberFormat::mxfp8 && !(kernels.peak(NumberFormat::nvfp4).value > 0))
    throw UserError("", "precision",
                    "mxfp8 needs tensor cores that scale blocks, Blackwell's (Transformer Engine "
                    "refuses it before compute capability 10.0); use \"fp8\", \"fp8_block\" or "
                    "\"bf16\"");
  if (kernels.peak(format).value > 0) return;
  const bool wide = kernels.peak(NumberFormat::fp32).value > 0;
  throw UserError("", "precision",
                  fmt::format("this calibration has no {} products (they were not measured, and no "
                              "data sheet gives a peak for them); use \"{}\"",
                              name_of(format), wide ? "fp32" : "bf16"));
}

// Frozen blocks come before the first that sees images, or the first block with adapters hands no
// gradient on.
bool gradients_end_early(const Model& model) {
  bool adapters = model.llm.blocks.adapters.lora_rank > 0;
  for (const Encoder& e : model.encoders) adapters |= e.blocks.adapters.lora_rank > 0;
  return adapters || (crosses(model) && !model.llm.trained);
}

std::int64_t crossing_blocks(const Model& model) {
  const auto llm = static_cast<std::uint16_t>(model.encoders.size());
  for (std::int64_t i = model.llm.blocks.num_hidden_layers; i > 0; --i)
    if (blocks_of(model, {LayerKind::block, llm, static_cast<std::uint32_t>(i - 1)})
            .cross_attention)
      return i;
  return 0;
}

void check_heads(const std::string& name, const Transformer& t, int tp) {
  const Recurrence& r = t.recurrence;
  if (!t.has_mixer) return;
  if (r && (r.num_key_heads % tp != 0 || r.num_value_heads % tp != 0))
    throw UserError("", "tensor_model_parallel_size",
                    fmt::format("{} key heads and {} value heads of the recurrence of {} do not "
                                "divide by {}",
                                r.num_key_heads, r.num_value_heads, name, tp));
  if (r || t.uneven_heads != UnevenHeads::refuse || t.num_attention_heads % tp == 0) return;
  throw UserError("", "uneven_heads",
                  fmt::format("{} attention heads of {} do not divide by "
                              "tensor_model_parallel_size {}; set uneven_heads or change it",
                              t.num_attention_heads, name, tp));
}

}  // namespace

LayerCosts::LayerCosts(const Model& model, const Parallelism& parallelism, const Software& software,
                       const KernelCosts& kernels, const ClusterSpec& cluster)
    : model_(model),
      parallelism_(parallelism),
      software_(software),
      kernels_(kernels),
      tp_group_(tp_group_of(parallelism.tensor_model_parallel_size, cluster)),
      cp_group_(cp_group_of(parallelism.tensor_model_parallel_size,
                            parallelism.context_parallel_size, cluster)),
      cp_nic_sharers_(nic_sharers(parallelism.tensor_model_parallel_size, cluster)),
      expert_group_(expert_group_of(parallelism, cluster)),
      expert_tp_group_(tp_group_of(parallelism.expert_tensor_ranks(), cluster)),
      crossing_blocks_(crossing_blocks(model)),
      ends_early_(gradients_end_early(model)),
      memo_(std::make_unique<Memo>()) {
  software_.host_time_per_kernel = software.host_time_per_kernel * cluster.host_slowdown;
  software_.host_time_per_expert_kernel =
      software.host_time_per_expert_kernel * cluster.host_slowdown;
  const int tp = parallelism.tensor_model_parallel_size;
  check_format(kernels, software.precision.format);
  const auto check = [tp](const std::string& name, const Transformer& first,
                          const OtherBlocks& others) {
    for (const Transformer* t : block_kinds(first, others)) check_heads(name, *t, tp);
  };
  for (const Encoder& e : model.encoders) check(e.name, e.blocks, e.other_blocks);
  check(model.llm.name, model.llm.blocks, model.llm.other_blocks);
}

LayerCosts::LayerCosts(LayerCosts&&) noexcept = default;
LayerCosts::~LayerCosts() = default;

// A tile whose tokens do not divide by tp cannot be split by itself: InternViT's 1,025 tokens.
bool LayerCosts::sequence_parallel(const Layer& layer) const {
  if (!parallelism_.sequence_parallel || tp_group_.ranks == 1) return false;
  if (is_llm(model_, layer) || software_.sequence_parallel_over_tiles) return true;
  const Encoder& e = model_.encoders[layer.module];
  const std::int64_t unit =
      e.tokens_per_output_token > 0 ? e.tokens_per_output_token : e.tokens_per_tile;
  return unit % tp_group_.ranks == 0;
}

LayerSetting LayerCosts::setting_of(const Layer& layer) const {
  LayerSetting s{kernels_,
                 software_,
                 tp_group_,
                 sequence_parallel(layer),
                 trained(model_, layer),
                 stream_needs_gradient(model_, layer),
                 has_adapters(model_, layer)};
  if (!is_llm(model_, layer)) return s;  // encoders stay in bf16, and their images whole
  s.cp_group = cp_group_;
  s.cp_comm_type = parallelism_.cp_comm_type;
  s.cp_nic_sharers = cp_nic_sharers_;
  if (layer.kind != LayerKind::block) return s;
  s.experts_apart = parallelism_.experts_apart();
  s.expert_group = expert_group_;
  s.expert_tp_group = expert_tp_group_;
  s.image_gradient = blocks_of(model_, layer).cross_attention && images_learn(model_);
  s.format = software_.precision.format;
  s.quantises_weights =
      s.quantises() && parallelism_.zero_stage == 3 && !software_.precision.fp8_param_gather;
  return s;
}

LayerSetting LayerCosts::setting_of(const Layer& layer, const TokenBatch& batch) const {
  LayerSetting s = setting_of(layer);
  if (software_.rotary_per_sample && is_llm(model_, layer)) s.rotated_apart = batch.sequences();
  return s;
}

// What a rank encodes.
TokenBatch LayerCosts::encoder_batch(const Layer& layer, const MicroBatch& mb) const {
  TokenBatch batch = mb.encoders[layer.module];
  if (software_.split_encoders_over_cp)
    for (SequenceGroup& g : batch.groups) g.count = ceil_div(g.count, cp_group_.ranks);
  return batch;
}

// Where cp ranks encode different images, all of them need what all become; their gradients go the
// other way.
void LayerCosts::exchange_images(const Layer& layer, const MicroBatch& mb, LayerCost& cost) const {
  if (!software_.split_encoders_over_cp || cp_group_.ranks == 1) return;
  const Encoder& e = model_.encoders[layer.module];
  const Bytes bytes{projected_tokens(e, mb.encoders[layer.module]) * projected_width(e) *
                    software_.precision.activation_bytes};
  const auto add = [&](std::vector<TimedKernel>& to, std::string_view name, CollectiveOp op) {
    const Cost c = kernels_.collective({op, bytes, cp_group_});
    to.push_back({name, true, to_time(c.time), {}, c.source});
  };
  add(cost.forward, "cp all-gather", CollectiveOp::all_gather);
  if (!cost.backward.empty()) {
    std::vector<TimedKernel> scatter;
    add(scatter, "cp reduce-scatter", CollectiveOp::reduce_scatter);
    cost.backward.insert(cost.backward.begin(), scatter.front());
  }
}

// In the LLM's sequences.
std::int64_t LayerCosts::image_tokens(const MicroBatch& mb) const {
  std::int64_t n = 0;
  if (crosses(model_)) return n;
  for (std::size_t e = 0; e < model_.encoders.size(); ++e)
    n += projected_tokens(model_.encoders[e], mb.encoders[e]);
  return n;
}

std::int64_t LayerCosts::deepstack_tokens(const MicroBatch& mb) const {
  std::int64_t n = 0;
  for (std::size_t e = 0; e < model_.encoders.size(); ++e)
    n += model_.encoders[e].deepstack_features *
         projected_tokens(model_.encoders[e], mb.encoders[e]);
  return n;
}

}  // namespace mllmsim::costs
