#include "cost_models/layers/layer_costs.hpp"

#include "cost_models/layers/activation_memory.hpp"
#include "cost_models/layers/block_kernels.hpp"
#include "cost_models/layers/end_kernels.hpp"
#include "cost_models/layers/layer_memo.hpp"
#include "cost_models/layers/recompute.hpp"
#include "sim/base/errors.hpp"

namespace mllmsim::costs {
namespace {

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

// After attention, by full recompute.
std::vector<TimedKernel> again_after(const BlockParts& parts) {
  const auto first = parts.after_attention.begin();
  return {first, first + static_cast<std::ptrdiff_t>(parts.after_again)};
}

}  // namespace

const LayerCost& LayerCosts::cost(const Layer& layer, const MicroBatch& mb, Recompute recompute) {
  check(mb.encoders.size() == model_.encoders.size(), "a micro-batch has an entry an encoder");
  const bool block = layer.kind == LayerKind::block;
  const bool llm = is_llm(model_, layer);
  TokenBatch counts;  // all that the LLM's embedding and head see
  if (llm && !block)
    counts.groups = {{mb.llm.tokens(), 1},
                     {image_tokens(mb), 1},
                     {deepstack_tokens(mb), 1},
                     {mb.llm.cross_keys(), 1},
                     {cp_group_.ranks == 1 ? 0 : setting_of(layer).local_tokens(mb.llm), 1}};
  const TokenBatch& batch = !llm ? mb.encoders[layer.module] : block ? mb.llm : counts;
  const AskedKey key{layer.kind, layer.module, kind_of(layer), block ? recompute : Recompute::none,
                     batch};

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
      take(projector_kernels(s, e, batch), projector_activations(s, e, batch));
      exchange_images(layer, mb, cost);
      break;
    }
    case LayerKind::embedding:
      if (is_llm(model_, layer)) {
        take(llm_embedding_kernels(s, model_.llm, tokens, ceil_div(image_tokens(mb), s.cp()),
                                   ceil_div(deepstack_tokens(mb), s.cp())),
             llm_embedding_activations(s, model_.llm, tokens, mb.llm.cross_keys()));
      } else {
        const Encoder& e = model_.encoders[layer.module];
        take(encoder_embedding_kernels(s, e, tokens), encoder_embedding_activations(s, e, tokens));
      }
      break;
    case LayerKind::head:
      take(head_kernels(s, model_.llm, tokens), head_activations(s, model_.llm, tokens));
      cost.working = head_backward_memory(s, model_.llm, tokens);
      break;
  }
  cost.model_flops = model_flops(layer, mb);
  if (accumulates_gradients(s)) cost.backward.push_back(gradient_accumulation(layer));
  wait_for_host({&cost.forward});
  wait_for_host({&cost.recompute, &cost.backward});
  return cost;
}

const LayerCosts::BlockTotals& LayerCosts::block_totals(const Layer& layer, const Block& block,
                                                        const TokenBatch& batch) {
  const std::int64_t tokens = block.setting.local_tokens(batch);
  const Memo::BlockKey key{layer.module, kind_of(layer), tokens, block.keys(batch),
                           block.setting.rotated_apart};
  const auto found = memo_->block_totals.find(key);
  if (found != memo_->block_totals.end()) return found->second;
  const BlockParts& parts = memo_->parts(block, key);
  BlockTotals t;
  for (const auto* list : {&parts.before_attention, &parts.after_attention})
    t.forward += totals(*list);
  for (const auto* list : {&parts.backward_after, &parts.backward_before})
    t.backward += totals(*list);
  if (accumulates_gradients(block.setting)) t.backward += totals({gradient_accumulation(layer)});
  t.rerun = totals(parts.rerun);
  t.again = totals(parts.before_attention);
  t.again += totals(again_after(parts));
  for (const Recompute r : {Recompute::none, Recompute::selective, Recompute::full}) {
    t.saved[static_cast<std::size_t>(r)] = costs::total(block_activations(block, batch, r));
    t.recomputed[static_cast<std::size_t>(r)] = block_recomputed(block, batch, r);
  }
  t.gradients = block_gradients(block, batch);
  return memo_->block_totals.emplace(key, t).first->second;
}

// Tiles are all alike, and layers that are no blocks depend on token counts: those totals are
// remembered.
std::optional<TotalKey> LayerCosts::total_key(const Layer& layer, const MicroBatch& mb,
                                              Recompute recompute) const {
  const TokenBatch& batch = is_llm(model_, layer) ? mb.llm : mb.encoders[layer.module];
  if (layer.kind == LayerKind::block && batch.groups.size() > 1) return std::nullopt;
  const bool embedding = is_llm(model_, layer) && layer.kind == LayerKind::embedding;
  const bool head = layer.kind == LayerKind::head;  // sees the number of tokens alone
  return TotalKey{layer.kind,
                  layer.module,
                  kind_of(layer),
                  recompute,
                  embedding ? deepstack_tokens(mb)
                  : head    ? 0
                            : batch.sequences(),
                  batch.tokens(),
                  embedding ? image_tokens(mb) : 0,
                  head ? 0 : batch.cross_keys(),
                  cp_group_.ranks == 1 ? 0 : setting_of(layer).local_tokens(batch)};
}

std::optional<std::uint64_t> LayerCosts::expect_total(const Layer& layer, const MicroBatch& mb,
                                                      Recompute recompute) const {
  const std::optional<TotalKey> key = total_key(layer, mb, recompute);
  if (!key) return std::nullopt;
  const std::uint64_t hash = KnownTotals::hash_of(*key);
  memo_->totals.expect(hash);
  return hash;
}

void LayerCosts::fetch_total(std::uint64_t expected) const { memo_->totals.fetch(expected); }

LayerTotals LayerCosts::total(const Layer& layer, const MicroBatch& mb, Recompute recompute) {
  if (const std::optional<TotalKey> key = total_key(layer, mb, recompute))
    return memo_->totals.of(*key, [&] { return totals(compute(layer, mb, recompute)); });
  const TokenBatch& batch = is_llm(model_, layer) ? mb.llm : mb.encoders[layer.module];
  if (!software_.flash_attention) return totals(cost(layer, mb, recompute));
  const Block block(blocks_of(model_, layer), setting_of(layer, batch));
  if (waits_for_counts(block) || block.setting.rotated_apart > 0)
    return totals(cost(layer, mb, recompute));
  const BlockTotals& parts = block_totals(layer, block, batch);
  const std::vector<TimedKernel> forward = attention_forward(block, batch);
  const std::vector<TimedKernel> backward = attention_backward(block, batch);
  LayerTotals t;
  t.forward = parts.forward;
  t.forward += totals(forward);
  t.backward = parts.backward;
  t.backward += totals(backward);
  if (block.setting.has_backward() && recompute == Recompute::full) {
    t.recompute = parts.again;
    t.recompute += totals(forward);
  }
  if (recompute == Recompute::selective) {
    const bool again = rerun_of(block, recompute).attention;
    t.recompute = parts.rerun;
    if (again) t.recompute += totals(forward);
  }
  KernelTotals both = t.recompute;
  both += t.backward;
  if (host_bound(t.forward) || host_bound(both)) return totals(cost(layer, mb, recompute));
  t.model_flops = model_flops(layer, mb);
  t.saved = parts.saved[static_cast<std::size_t>(recompute)];
  t.recomputed = parts.recomputed[static_cast<std::size_t>(recompute)];
  t.working = t.recomputed + parts.gradients;
  return t;
}

LayerCost LayerCosts::block_cost(const Layer& layer, const TokenBatch& batch, Recompute recompute) {
  const Block block(blocks_of(model_, layer), setting_of(layer, batch));
  const BlockParts& p =
      memo_->parts(block, {layer.module, kind_of(layer), block.setting.local_tokens(batch),
                           block.keys(batch), block.setting.rotated_apart});
  const std::vector<TimedKernel> attention = attention_forward(block, batch);

  LayerCost cost;
  cost.forward = joined(p.before_attention, attention, p.after_attention);
  cost.backward = joined(p.backward_after, attention_backward(block, batch), p.backward_before);
  if (block.setting.has_backward()) {
    if (recompute == Recompute::full)
      cost.recompute = joined(p.before_attention, attention, again_after(p));
    if (recompute == Recompute::selective) cost.recompute = p.rerun;
    if (rerun_of(block, recompute).attention) append(cost.recompute, attention);
  }
  cost.saved = costs::total(block_activations(block, batch, recompute));
  cost.recomputed = block_recomputed(block, batch, recompute);
  cost.working = cost.recomputed + block_gradients(block, batch);
  return cost;
}

}  // namespace mllmsim::costs
