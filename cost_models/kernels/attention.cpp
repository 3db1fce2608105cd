#include "cost_models/kernels/attention.hpp"

#include <algorithm>
#include <cmath>

#include "sim/base/errors.hpp"

namespace mllmsim::costs {
namespace {

constexpr double kTile = 128;           // query rows of one thread block; half as many keys
constexpr double kMaskDistance = 0.3;   // another mask is as far as a head dim 1.2 times as large
constexpr double kBackwardFlops = 2.5;  // matrix products: 5 backward, 2 forward

double p_norm(double a, double b, double p) {
  if (p == 2) return std::sqrt(a * a + b * b);
  const double high = std::max(a, b), low = std::min(a, b);
  return high * std::pow(1 + std::pow(low / high, p), 1 / p);
}

struct Choice {
  const AttentionKernel* kernel = nullptr;
  double factor = 1;
  Source source = Source::estimate;
  bool ratio = false;  // a forward kernel stands for a backward
};

// The kernel itself, or the nearest by head dim and mask; a ratio if there is no backward.
Choice choose(const AttentionModel& model, const Attention& a) {
  Choice best;
  double best_distance = 0;
  for (const AttentionKernel& k : model.kernels) {
    if (k.backward && !a.backward) continue;
    const double dims =
        std::abs(std::log2(static_cast<double>(k.head_dim) / static_cast<double>(a.head_dim)));
    const double distance =
        (k.backward != a.backward ? 100 : 0) + (k.causal != a.causal ? kMaskDistance : 0) + dims;
    if (best.kernel && distance >= best_distance) continue;
    best_distance = distance;
    best = {&k, 1, k.provenance.source};
    if (dims != 0) best.source = weaker(best.source, Source::transferred);
    if (k.causal != a.causal) best.source = Source::estimate;
    if (k.backward != a.backward) {
      best.ratio = true;
      best.source = weaker(best.source, model.backward.source);
    }
  }
  check(best.kernel != nullptr, "attention model without a forward kernel");
  return best;
}

// Backward over forward at a length.
double backward_ratio(const AttentionModel& model, double length) {
  const auto& points = model.backward_by_length;
  if (points.empty()) return model.backward.value;
  const auto next = std::find_if(points.begin(), points.end(),
                                 [&](const BackwardRatio& p) { return p.length >= length; });
  if (next == points.begin()) return points.front().factor;
  if (next == points.end()) return points.back().factor;
  const BackwardRatio &low = *(next - 1), &high = *next;
  const double share = std::log2(length / low.length) / std::log2(high.length / low.length);
  return low.factor + share * (high.factor - low.factor);
}

// Makes the choice one of an older generation of kernels, if that is what runs.
void age(Choice& choice, const AttentionModel& model, int wanted) {
  if (wanted == 0 || wanted >= model.generation) return;
  const auto older = std::find_if(model.older.begin(), model.older.end(),
                                  [&](const OlderAttention& o) { return o.generation == wanted; });
  check(older != model.older.end(), "attention model without a factor for an older generation");
  choice.factor *= older->time.value;
  choice.source = weaker(choice.source, older->time.source);
}

void sustain(Choice& choice, const AttentionModel& model) {
  if (!model.sustained) return;
  choice.factor *= model.sustained->value;
  choice.source = weaker(choice.source, model.sustained->source);
}

void widen_keys(Choice& choice, const AttentionModel& model, const Attention& a) {
  const auto& factor = a.backward ? model.wide_keys_backward : model.wide_keys;
  if (!a.wide_keys || !factor) return;
  choice.factor *= factor->value;
  choice.source = weaker(choice.source, factor->source);
}

}  // namespace

double AttentionTable::at(double length, double heads) const {
  if (rows == 0) return 0;
  const double y = std::clamp(length - first_length, 0.0, rows - 1.0);
  const double x = std::clamp(heads - first_heads, 0.0, columns - 1.0);
  const int row = std::min(static_cast<int>(y), std::max(0, rows - 2));
  const int column = std::min(static_cast<int>(x), std::max(0, columns - 2));
  const auto value = [&](int r, int c) {
    const std::int64_t at =
        std::int64_t{columns} * std::min(r, rows - 1) + std::min(c, columns - 1);
    return correction[static_cast<std::size_t>(at)];
  };
  const double v = y - row, u = x - column;
  return (1 - v) * ((1 - u) * value(row, column) + u * value(row, column + 1)) +
         v * ((1 - u) * value(row + 1, column) + u * value(row + 1, column + 1));
}

namespace {

// Keys that all query tiles of a sequence see together, and those of the last one.
struct SeenKeys {
  double all = 0, most = 0;
};

SeenKeys seen_keys(const AttentionShape& s, double tile) {
  const double step = tile / 2;  // keys it takes at a time
  const double tiles = std::ceil(s.length / tile);
  const double keys = std::ceil((s.keys > 0 ? s.keys : s.length) / step) * step;
  if (!s.causal) return {keys * tiles, keys};
  const double most = std::ceil(s.window / step) * step + tile;  // of a tile behind a window
  const double before = s.window > 0 ? std::floor(most / tile) : tiles;
  if (before >= tiles) return {tile * tiles * (tiles + 1) / 2 - (tile * tiles - keys), keys};
  return {tile * before * (before + 1) / 2 + (tiles - before) * most, most};
}

}  // namespace

Seconds attention_busy(const AttentionKernel& k, const Gpu& gpu, const AttentionShape& s) {
  const double tile = k.tile.value_or(kTile);
  const double tiles = std::ceil(s.length / tile);
  const auto [all_keys, keys] = seen_keys(s, tile);
  const double flops_per_key = 4 * tile * s.head_dim * (k.backward ? kBackwardFlops : 1);
  const double rate = k.rate * gpu.peak.value;
  const double total = s.batch * s.heads * (all_keys + tiles * k.k_overhead) * flops_per_key / rate;
  const double longest = (keys + k.k_overhead) * flops_per_key / (rate / gpu.sms);
  const double tensors = k.backward ? 2 : 1;  // backward also reads or writes every gradient
  const double bytes = s.keys > 0 ? kHalf * tensors * s.batch * s.head_dim *
                                        (2 * s.length * s.heads + 2 * s.keys * s.kv_heads)
                                  : kHalf * tensors * s.batch * s.length * s.head_dim *
                                        (2 * s.heads + 2 * s.kv_heads);
  const double compute = p_norm(total, longest, k.norm);
  const double busy = p_norm(compute, bytes / gpu.memory_bandwidth.value, 2);
  const double side = s.keys > 0 ? std::sqrt(s.length * s.keys) : s.length;
  return {busy * std::exp(k.table.at(std::log2(side), std::log2(s.batch * s.heads)))};
}

Cost attention_time(const AttentionModel& model, const Gpu& gpu, const Attention& a) {
  double tokens = 0;
  for (const SequenceGroup& g : a.sequences)
    if (!a.cross || g.cross_keys > 0)
      tokens += static_cast<double>(g.length) * static_cast<double>(g.count);
  if (tokens == 0) return {Seconds{0}, Source::measured};

  Choice choice = choose(model, a);
  age(choice, model, a.generation);
  sustain(choice, model);
  widen_keys(choice, model, a);
  const AttentionKernel& kernel = *choice.kernel;
  const AttentionTable& table = kernel.table;
  Source source = choice.source;
  // The longest sequence takes longest alone, too.
  const SequenceGroup& longest = *std::max_element(a.sequences.begin(), a.sequences.end());
  const auto ratio = [&](double length) {
    return choice.ratio ? backward_ratio(model, length) : 1.0;
  };
  double sum = 0, alone = 0;
  for (const SequenceGroup& g : a.sequences) {
    if (g.length == 0 || g.count == 0 || (a.cross && g.cross_keys == 0)) continue;
    AttentionShape shape{
        static_cast<double>(g.length),   static_cast<double>(g.count),
        static_cast<double>(a.heads),    static_cast<double>(a.kv_heads),
        static_cast<double>(a.head_dim), a.causal,
        static_cast<double>(a.window),   a.cross ? static_cast<double>(g.cross_keys) : 0.0};
    if (a.cross) source = Source::estimate;
    if (g.length == longest.length || g.count > longest.count)
      alone = std::max(alone, ratio(shape.length) * attention_busy(kernel, gpu, shape).value);
    const double share = shape.length * shape.batch / tokens;
    shape.batch = tokens / shape.length;
    sum += share * ratio(shape.length) * attention_busy(kernel, gpu, shape).value;
    const double y = std::log2(shape.length) - table.first_length;
    const double x = std::log2(shape.batch * shape.heads) - table.first_heads;
    if (y < 0 || x < 0 || y > table.rows - 1 || x > table.columns - 1) source = Source::estimate;
  }
  const double launch = ratio(static_cast<double>(longest.length)) * kernel.launch.value;
  return {Seconds{choice.factor * (launch + std::max(sum, alone))}, source};
}

}  // namespace mllmsim::costs
