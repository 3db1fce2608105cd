#include "cost_models/layers/layer_costs.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <map>
#include <tuple>
#include <unordered_map>

#include "cost_models/layers/activation_memory.hpp"
#include "cost_models/layers/block_kernels.hpp"
#include "cost_models/layers/end_kernels.hpp"
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

// Of a node's GPUs on one NIC, those of one tp group, which send at once.
int nic_sharers(int tp, const ClusterSpec& cluster) {
  return std::max(1, std::min(tp, cluster.gpus_per_node / std::max(1, cluster.nics_per_node)));
}

void check_format(const KernelCosts& kernels, NumberFormat format) {
  if (kernels.peak(format).value > 0) return;
  throw UserError("", "precision",
                  fmt::format("the GPU of this calibration has no {} products (its data sheet "
                              "gives no peak for them); use \"bf16\"",
                              name_of(format)));
}

void check_heads(const std::string& name, const Transformer& t, int tp) {
  if (t.uneven_heads != UnevenHeads::refuse || t.num_attention_heads % tp == 0) return;
  throw UserError("", "uneven_heads",
                  fmt::format("{} attention heads of {} do not divide by "
                              "tensor_model_parallel_size {}; set uneven_heads or change it",
                              t.num_attention_heads, name, tp));
}

void append(std::vector<TimedKernel>& to, const std::vector<TimedKernel>& from) {
  to.insert(to.end(), from.begin(), from.end());
}

std::vector<TimedKernel> joined(const std::vector<TimedKernel>& a,
                                const std::vector<TimedKernel>& b,
                                const std::vector<TimedKernel>& c) {
  std::vector<TimedKernel> out;
  out.reserve(a.size() + b.size() + c.size());
  append(out, a);
  append(out, b);
  append(out, c);
  return out;
}

std::int64_t projected_width(const Encoder& e) {
  return e.projector_sizes.empty() ? e.blocks.hidden_size : e.projector_sizes.back();
}

// What a cost depends on: blocks of one kind in a module are alike. Of the batch, only what the
// layer sees. Asked with a reference to a batch, remembered with a copy.
template <class Batch>
struct Key {
  LayerKind kind;
  std::uint16_t module;
  std::size_t block_kind;
  Recompute recompute;
  Batch batch;

  auto tied() const { return std::tie(kind, module, block_kind, recompute, batch); }
};
using AskedKey = Key<const TokenBatch&>;
using StoredKey = Key<TokenBatch>;

struct KeyOrder {
  using is_transparent = void;
  bool operator()(const auto& a, const auto& b) const { return a.tied() < b.tied(); }
};

// A GPU that waits for launches: the list takes as long as launching it, each kernel its share.
void bound_by_host(std::vector<TimedKernel>& kernels, Seconds per_kernel) {
  const Time on_gpu = totals(kernels).time;
  const Time on_host = to_time(per_kernel * static_cast<double>(kernels.size()));
  if (on_host <= on_gpu || on_gpu == Time{}) return;
  for (TimedKernel& k : kernels) {
    k.time = to_time(to_seconds(k.time) * (on_host / on_gpu));
    k.source = Source::estimate;
  }
}

}  // namespace

namespace {

// A layer and all it sees of a micro-batch whose sequences are alike.
struct TotalKey {
  LayerKind kind;
  std::uint16_t module;
  std::size_t block_kind;
  Recompute recompute;
  std::int64_t sequences, tokens, image_tokens;
  std::int64_t local_tokens;  // of a cp rank: depends on how long each sequence is

  bool operator==(const TotalKey&) const = default;
};

struct TotalKeyHash {
  std::size_t operator()(const TotalKey& key) const {
    std::uint64_t h = static_cast<std::uint64_t>(key.kind) | std::uint64_t{key.module} << 8 |
                      static_cast<std::uint64_t>(key.recompute) << 24 |
                      static_cast<std::uint64_t>(key.block_kind) << 32;
    for (const std::int64_t n : {key.sequences, key.tokens, key.image_tokens, key.local_tokens})
      h = (h ^ static_cast<std::uint64_t>(n)) * 0x9E3779B97F4A7C15ULL;
    return h ^ (h >> 32);
  }
};

constexpr std::size_t kMostTotals = 1 << 16;  // then they are forgotten

}  // namespace

// The parts of a block that depend on the number of tokens alone.
struct LayerCosts::BlockTotals {
  KernelTotals forward, backward;
  std::size_t forward_kernels = 0, backward_kernels = 0;
  std::array<Bytes, 3> saved{};  // by recompute; with flash attention
  Bytes gradients{};             // that the backward works with
};

// A new pack with a known number of tokens costs only its attention and a copy of the other parts.
// Those are kept for good: token counts are bounded by the longest micro-batch.
struct LayerCosts::Memo {
  using Costs = std::map<StoredKey, LayerCost, KeyOrder>;
  Costs costs;
  Costs::iterator latest = costs.end();  // blocks of a stage are asked for one after another
  std::deque<Costs::iterator> oldest_first;
  using BlockKey = std::tuple<std::uint16_t, std::size_t, std::int64_t>;  // module, kind, tokens
  std::map<BlockKey, BlockParts> block_parts;
  std::map<BlockKey, BlockTotals> block_totals;
  std::unordered_map<TotalKey, LayerTotals, TotalKeyHash> totals;

  const LayerCost* find(const AskedKey& key) {
    if (latest == costs.end() || latest->first.tied() != key.tied()) latest = costs.find(key);
    return latest == costs.end() ? nullptr : &latest->second;
  }

  const LayerCost& remember(const AskedKey& key, LayerCost cost) {
    latest = costs
                 .emplace(StoredKey{key.kind, key.module, key.block_kind, key.recompute, key.batch},
                          std::move(cost))
                 .first;
    oldest_first.push_back(latest);
    if (oldest_first.size() > kRemembered) {
      costs.erase(oldest_first.front());
      oldest_first.pop_front();
    }
    return latest->second;
  }

  const BlockParts& parts(const Block& block, const BlockKey& key) {
    const auto found = block_parts.find(key);
    if (found != block_parts.end()) return found->second;
    return block_parts.emplace(key, costs::block_parts(block, std::get<2>(key))).first->second;
  }
};

KernelTotals& KernelTotals::operator+=(const KernelTotals& other) {
  time += other.time;
  communication += other.communication;
  flops += other.flops;
  for (std::size_t s = 0; s < kSources; ++s) by_source[s] += other.by_source[s];
  return *this;
}

KernelTotals totals(const std::vector<TimedKernel>& kernels) {
  KernelTotals sum;
  for (const TimedKernel& k : kernels) {
    sum.time += k.time;
    if (k.communication) sum.communication += k.time;
    sum.flops += k.flops;
    sum.by_source[static_cast<std::size_t>(k.source)] += k.time;
  }
  return sum;
}

LayerTotals totals(const LayerCost& cost) {
  return {totals(cost.forward),
          totals(cost.recompute),
          totals(cost.backward),
          cost.model_flops,
          cost.saved,
          cost.working};
}

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
      memo_(std::make_unique<Memo>()) {
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
                 needs_input_gradient(model_, layer),
                 has_adapters(model_, layer)};
  if (!is_llm(model_, layer)) return s;  // encoders stay in bf16, and their images whole
  s.cp_group = cp_group_;
  s.cp_comm_type = parallelism_.cp_comm_type;
  s.cp_nic_sharers = cp_nic_sharers_;
  if (layer.kind != LayerKind::block) return s;
  s.format = software_.precision.format;
  s.quantises_weights =
      s.quantises() && parallelism_.zero_stage == 3 && !software_.precision.fp8_param_gather;
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

std::int64_t LayerCosts::image_tokens(const MicroBatch& mb) const {
  std::int64_t n = 0;
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

const LayerCost& LayerCosts::cost(const Layer& layer, const MicroBatch& mb, Recompute recompute) {
  check(mb.encoders.size() == model_.encoders.size(), "a micro-batch has an entry an encoder");
  const bool block = layer.kind == LayerKind::block;
  const bool llm = is_llm(model_, layer);
  TokenBatch counts;  // all that the LLM's embedding and head see
  if (llm && !block)
    counts.groups = {{mb.llm.tokens(), 1},
                     {image_tokens(mb), 1},
                     {deepstack_tokens(mb), 1},
                     {cp_group_.ranks == 1 ? 0 : setting_of(layer).local_tokens(mb.llm), 1}};
  const TokenBatch& batch = !llm ? mb.encoders[layer.module] : block ? mb.llm : counts;
  const AskedKey key{layer.kind, layer.module, block_kind(model_, layer),
                     block ? recompute : Recompute::none, batch};

  if (const LayerCost* known = memo_->find(key)) return *known;
  return memo_->remember(key, compute(layer, mb, recompute));
}

LayerCost LayerCosts::compute(const Layer& layer, const MicroBatch& mb, Recompute recompute) {
  const LayerSetting s = setting_of(layer);
  TokenBatch encoded;
  if (!is_llm(model_, layer)) encoded = encoder_batch(layer, mb);
  const TokenBatch& batch = is_llm(model_, layer) ? mb.llm : encoded;
  const std::int64_t tokens = s.local_tokens(batch);
  LayerCost cost;
  if (tokens == 0) return cost;  // a micro-batch without images
  const auto take = [&cost](LayerKernels kernels, const std::vector<SavedTensor>& saved) {
    cost.forward = std::move(kernels.forward);
    cost.backward = std::move(kernels.backward);
    cost.saved = costs::total(saved);
  };
  switch (layer.kind) {
    case LayerKind::block:
      cost = block_cost(layer, batch, recompute);
      break;
    case LayerKind::projector: {
      const Encoder& e = model_.encoders[layer.module];
      take(projector_kernels(s, e, batch), projector_activations(s, e, projected_tokens(e, batch)));
      exchange_images(layer, mb, cost);
      break;
    }
    case LayerKind::embedding:
      if (is_llm(model_, layer)) {
        take(llm_embedding_kernels(s, model_.llm, tokens, ceil_div(image_tokens(mb), s.cp()),
                                   ceil_div(deepstack_tokens(mb), s.cp())),
             llm_embedding_activations(s, model_.llm, tokens));
      } else {
        const Encoder& e = model_.encoders[layer.module];
        take(encoder_embedding_kernels(s, e, tokens), encoder_embedding_activations(s, e, tokens));
      }
      break;
    case LayerKind::head:
      take(head_kernels(s, model_.llm, tokens), head_activations(s, model_.llm, tokens));
      cost.working = head_working_memory(s, model_.llm, tokens);
      break;
  }
  cost.model_flops = model_flops(layer, mb);
  if (accumulates_gradients(s)) cost.backward.push_back(gradient_accumulation(layer));
  if (!software_.cuda_graphs)
    for (auto* kernels : {&cost.forward, &cost.recompute, &cost.backward})
      bound_by_host(*kernels, software_.host_time_per_kernel);
  return cost;
}

bool LayerCosts::host_bound(std::size_t kernels, Time on_gpu) const {
  return !software_.cuda_graphs &&
         to_time(software_.host_time_per_kernel * static_cast<double>(kernels)) > on_gpu;
}

const LayerCosts::BlockTotals& LayerCosts::block_totals(const Layer& layer, const Block& block,
                                                        const TokenBatch& batch) {
  const std::int64_t tokens = block.setting.local_tokens(batch);
  const Memo::BlockKey key{layer.module, block_kind(model_, layer), tokens};
  const auto found = memo_->block_totals.find(key);
  if (found != memo_->block_totals.end()) return found->second;
  const BlockParts& parts = memo_->parts(block, key);
  BlockTotals t;
  for (const auto* list : {&parts.before_attention, &parts.after_attention}) {
    t.forward += totals(*list);
    t.forward_kernels += list->size();
  }
  for (const auto* list : {&parts.backward_after, &parts.backward_before}) {
    t.backward += totals(*list);
    t.backward_kernels += list->size();
  }
  if (accumulates_gradients(block.setting)) {
    t.backward += totals({gradient_accumulation(layer)});
    ++t.backward_kernels;
  }
  for (const Recompute r : {Recompute::none, Recompute::selective, Recompute::full})
    t.saved[static_cast<std::size_t>(r)] = costs::total(block_activations(block, batch, r));
  t.gradients = block_gradients(block, tokens);
  return memo_->block_totals.emplace(key, t).first->second;
}

LayerTotals LayerCosts::total(const Layer& layer, const MicroBatch& mb, Recompute recompute) {
  const TokenBatch& batch = is_llm(model_, layer) ? mb.llm : mb.encoders[layer.module];
  // Tiles are all alike, and other layers depend on token counts: those totals are remembered.
  if (layer.kind != LayerKind::block || batch.groups.size() <= 1) {
    const bool counts_only = is_llm(model_, layer) && layer.kind != LayerKind::block;
    const TotalKey key{layer.kind,
                       layer.module,
                       block_kind(model_, layer),
                       recompute,
                       counts_only ? deepstack_tokens(mb) : batch.sequences(),
                       batch.tokens(),
                       counts_only ? image_tokens(mb) : 0,
                       cp_group_.ranks == 1 ? 0 : setting_of(layer).local_tokens(batch)};
    if (memo_->totals.size() > kMostTotals) memo_->totals.clear();
    const auto [found, added] = memo_->totals.try_emplace(key);
    if (added) found->second = totals(compute(layer, mb, recompute));
    return found->second;
  }
  if (!software_.flash_attention) return totals(cost(layer, mb, recompute));
  const Block block(blocks_of(model_, layer), setting_of(layer));
  const BlockTotals& parts = block_totals(layer, block, batch);
  const std::vector<TimedKernel> forward = attention_forward(block, batch);
  const std::vector<TimedKernel> backward = attention_backward(block, batch);
  LayerTotals t;
  t.forward = parts.forward;
  t.forward += totals(forward);
  t.backward = parts.backward;
  t.backward += totals(backward);
  if (host_bound(parts.forward_kernels + forward.size(), t.forward.time) ||
      host_bound(parts.backward_kernels + backward.size(), t.backward.time))
    return totals(cost(layer, mb, recompute));
  if (block.setting.has_backward() && recompute == Recompute::full) t.recompute = t.forward;
  t.model_flops = model_flops(layer, mb);
  t.saved = parts.saved[static_cast<std::size_t>(recompute)];
  t.working = parts.saved[static_cast<std::size_t>(Recompute::none)] - t.saved + parts.gradients;
  return t;
}

LayerCost LayerCosts::block_cost(const Layer& layer, const TokenBatch& batch, Recompute recompute) {
  const Block block(blocks_of(model_, layer), setting_of(layer));
  const BlockParts& p = memo_->parts(
      block, {layer.module, block_kind(model_, layer), block.setting.local_tokens(batch)});
  const std::vector<TimedKernel> attention = attention_forward(block, batch);

  LayerCost cost;
  cost.forward = joined(p.before_attention, attention, p.after_attention);
  cost.backward = joined(p.backward_after, attention_backward(block, batch), p.backward_before);
  if (block.setting.has_backward()) {
    if (recompute == Recompute::full) cost.recompute = cost.forward;
    // Flash attention recomputes its scores in its own backward, whatever is asked.
    if (recompute == Recompute::selective && !software_.flash_attention) cost.recompute = attention;
  }
  cost.saved = costs::total(block_activations(block, batch, recompute));
  cost.working = costs::total(block_activations(block, batch, Recompute::none)) - cost.saved +
                 block_gradients(block, block.setting.local_tokens(batch));
  return cost;
}

// With sharded parameters only a share is left after the reduce-scatter.
bool LayerCosts::accumulates_gradients(const LayerSetting& s) const {
  return (s.trained || s.adapters) && parallelism_.zero_stage < 3 &&
         parallelism_.micro_batches() > 1 && software_.grad_accumulation_bytes_per_parameter > 0;
}

TimedKernel LayerCosts::gradient_accumulation(const Layer& layer) const {
  const std::int64_t parameters = trained_parameters_per_rank(model_, layer, tp_group_.ranks);
  const Bytes bytes{parameters * software_.grad_accumulation_bytes_per_parameter};
  const Cost cost = kernels_.memory_bound({MemoryOp::elementwise, bytes});
  return {"gradient accumulation", false, to_time(cost.time), {}, cost.source};
}

// Megatron's convention: 2 FLOPs per matrix value and token for each pass, attention over the whole
// square, heads and vocabulary as the model has them.
Flops LayerCosts::model_flops(const Layer& layer, const MicroBatch& mb) const {
  const LayerSetting s = setting_of(layer);
  const Transformer& t = blocks_of(model_, layer);
  const bool llm = is_llm(model_, layer);
  const TokenBatch& batch = llm ? mb.llm : mb.encoders[layer.module];
  const bool patches = layer.kind == LayerKind::embedding;  // whose input is data
  const double passes = 1.0 + (s.has_backward() && !patches ? 1.0 : 0.0) + (s.trained ? 1.0 : 0.0);
  const std::int64_t tokens = layer.kind == LayerKind::projector
                                  ? projected_tokens(model_.encoders[layer.module], batch)
                                  : batch.tokens();
  Flops flops{passes * 2.0 * static_cast<double>(tokens) *
              static_cast<double>(matrix_values(model_, layer))};
  if (layer.kind == LayerKind::block) {
    const BlockShard whole_block(t, 1);
    const Attention whole{chunked(batch, t.attention_chunk_size),
                          t.num_attention_heads,
                          t.num_key_value_heads,
                          whole_block.even_head_dim(),
                          t.causal,
                          false,
                          0,
                          t.sliding_window};
    flops += whole.flops() * (s.has_backward() ? 3.0 : 1.0);
  }
  return flops;
}

Bytes LayerCosts::boundary(const Layer& layer, const MicroBatch& mb) const {
  const std::int64_t h = blocks_of(model_, layer).hidden_size;
  if (is_llm(model_, layer)) {
    if (layer.kind == LayerKind::head) return {};
    // DeepStack's features go along until the block that takes them.
    const std::int64_t taken = layer.kind == LayerKind::block ? layer.index + 1 : 0;
    const LayerSetting s = setting_of(layer);
    std::int64_t tokens = s.local_tokens(mb.llm);
    for (std::size_t e = 0; e < model_.encoders.size(); ++e)
      tokens += std::max<std::int64_t>(0, model_.encoders[e].deepstack_features - taken) *
                ceil_div(projected_tokens(model_.encoders[e], mb.encoders[e]), s.cp());
    return {tokens * h * software_.precision.activation_bytes};
  }
  const auto projected = [&](std::size_t e) {
    return projected_tokens(model_.encoders[e], mb.encoders[e]) *
           projected_width(model_.encoders[e]) * (1 + model_.encoders[e].deepstack_features);
  };
  std::int64_t values = layer.kind == LayerKind::projector ? projected(layer.module)
                                                           : mb.encoders[layer.module].tokens() * h;
  for (std::size_t e = 0; e < layer.module; ++e) values += projected(e);
  return {values * software_.precision.activation_bytes};
}

Time LayerCosts::tp_gather(Bytes bytes) const {
  return to_time(kernels_.collective({CollectiveOp::all_gather, bytes, tp_group_}).time);
}

Time LayerCosts::quantise_weights(std::int64_t parameters) const {
  const Precision& precision = software_.precision;
  const NumberFormat format = precision.format;
  if (!is_quantised(format) || parallelism_.zero_stage == 3 || parameters == 0) return {};
  const int passes = needs_amax_pass(format, precision.fp8_current_scaling) ? 2 : 1;
  // Parameters that are gathered quantised only need their copy by columns.
  const double read = precision.fp8_param_gather ? bytes_of(format) : passes * kBf16;
  const double written = (precision.fp8_param_gather ? 1 : 2) * bytes_of(format);
  return to_time(
      kernels_.memory_bound({MemoryOp::elementwise, scaled(Bytes{parameters}, read + written)})
          .time);
}

Time LayerCosts::optimizer_step(std::int64_t parameters) const {
  const Precision& precision = software_.precision;
  const std::int64_t gradient = precision.grad_bytes_per_parameter;
  const std::int64_t state = precision.optimizer_bytes_per_parameter;
  const std::int64_t to_bf16 = kFp32 + precision.parameter_bytes;
  const std::int64_t bytes = gradient        // norm
                             + 2 * gradient  // clip
                             + gradient      // Adam: read the gradient,
                             + 2 * state     //   update master weights and moments
                             + to_bf16       // master weights into parameters
                             + gradient;     // zero
  return to_time(kernels_.memory_bound({MemoryOp::optimizer, Bytes{parameters * bytes}}).time);
}

}  // namespace mllmsim::costs
