#include "cost_models/kernels/gemm.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

namespace mllmsim::costs {
namespace {

constexpr std::array kSplits{1, 2, 3, 4, 6, 8, 12, 16};
constexpr double kSmallestSplitK = 128;
constexpr double kBurst = 1e-3;  // seconds

// Tensor cores are fed by loads of 16 bytes, 8 values of 2. Matrices of a batch that are cut out of
// larger ones, as heads are, start wherever their width ends; where that is no multiple of 8, the
// units for fp32 multiply, at most. Their peak is 1/16 of the tensor cores' on an A100 and 1/15 on
// an H100 by data sheets; that products reach 0.8 of it is an estimate. How many rows there are
// does not matter: m, or k of a weight gradient.
Seconds without_tensor_cores(const Gpu& gpu, const Gemm& g) {
  constexpr double kPeaks = 16, kReached = 0.8;
  if (g.batch == 1 || gpu.products_in == NumberFormat::fp32) return {};
  const std::int64_t widths = g.n | (g.pass == GemmPass::weight_gradient ? g.m : g.k);
  if (widths % 8 == 0) return {};
  return Seconds{g.flops().value * kPeaks / (kReached * gpu.peak.value)};
}

}  // namespace

Seconds gemm_time(const GemmParameters& p, const Gpu& gpu, const Gemm& g, double power) {
  const auto m = static_cast<double>(g.m), n = static_cast<double>(g.n),
             k = static_cast<double>(g.k), batch = static_cast<double>(g.batch);
  const double sms = gpu.sms;
  const double bandwidth = gpu.memory_bandwidth.value * p.memory_efficiency;
  // Weight gradients are added to what earlier micro-batches left.
  const double output = g.format == NumberFormat::fp32        ? kFp32
                        : g.pass == GemmPass::weight_gradient ? kFp32 + kFp32
                                                              : kHalf;
  const double bytes = batch * (bytes_of(g.format) * k * (m + n) + output * m * n);
  const double peak = is_quantised(g.format) ? gpu.peak_of(g.format).value : gpu.peak.value;
  const double split_bytes = batch * (kFp32 + kFp32) * m * n;  // written and read again

  double best = std::numeric_limits<double>::infinity();
  for (const GemmTile& tile : p.tiles) {
    const double tiles = batch * std::ceil(m / tile.m) * std::ceil(n / tile.n);
    const double rate = tile.rate * peak / sms;
    for (const int split : kSplits) {
      if (split > 1 && (k < kSmallestSplitK * split || tiles * split > 4 * sms)) break;
      const double x = std::max(1.0, tiles * split / sms);
      const double waves = x + p.sharpness * (std::ceil(x) - x);
      const double compute = waves * 2 * tile.m * tile.n * (k / split + p.k_overhead) / rate;
      const double memory = (bytes + split_bytes * (split - 1)) / bandwidth;
      if (std::max(compute, memory) >= best) continue;
      const double high = std::max(compute, memory), low = std::min(compute, memory);
      const double busy = high * std::pow(1 + std::pow(low / high, p.norm), 1 / p.norm) +
                          (split > 1 ? p.split_cost.value : 0);
      best = std::min(best, busy);
    }
  }
  const auto slowed = [&p](double t) { return 1 + p.derate * t / (t + p.derate_time.value); };
  return {p.launch.value + best * std::max(slowed(best), power * slowed(kBurst))};
}

namespace {

struct Chosen {
  const GemmParameters& parameters;
  Source source;
};

Chosen parameters_for(const GemmModel& model, const Gemm& g) {
  const bool large = std::min({g.m, g.n, g.k}) >= kLargeGemm;
  const auto of = [&](const auto& m) -> const GemmParameters& { return large ? m.large : m.all; };
  if (!is_quantised(g.format)) return {of(model), of(model).provenance.source};
  const QuantisedGemm* eight_bits = nullptr;
  for (const QuantisedGemm& q : model.quantised) {
    if (q.format == g.format) return {of(q), of(q).provenance.source};
    if (q.format == NumberFormat::fp8) eight_bits = &q;
  }
  if (eight_bits && g.format != NumberFormat::nvfp4)
    return {of(*eight_bits), weaker(of(*eight_bits).provenance.source, Source::transferred)};
  return {of(model), Source::estimate};
}

// Those of fp8 stand for other formats of 8 bits.
const GroupedGemm* grouped_for(const GemmModel& model, NumberFormat format) {
  const GroupedGemm* eight_bits = nullptr;
  for (const GroupedGemm& g : model.grouped) {
    if (g.format == format) return &g;
    if (g.format == NumberFormat::fp8) eight_bits = &g;
  }
  return is_quantised(format) ? eight_bits : nullptr;
}

// What a correction says of a product, and how near it is: 1 if it is of that very shape.
struct Near {
  double log_ratio = 0, weight = 0;
};

Near corrected(const std::vector<GemmCorrection>& corrections, const Gemm& g) {
  constexpr double kOctaves = 0.35, kPrior = 0.05;
  const auto octaves = [](std::int64_t a, std::int64_t b) {
    return std::log2(static_cast<double>(a) / static_cast<double>(b));
  };
  double sum = 0, weights = 0;
  Near near;
  for (const GemmCorrection& c : corrections) {
    if (c.pass != g.pass) continue;
    const double m = octaves(c.m, g.m), n = octaves(c.n, g.n), k = octaves(c.k, g.k);
    const double weight = std::exp(-(m * m + n * n + k * k) / (2 * kOctaves * kOctaves));
    sum += weight * c.log_ratio;
    weights += weight;
    near.weight = std::max(near.weight, weight);
  }
  near.log_ratio = sum / (weights + kPrior);
  return near;
}

// That of bf16 stands for formats without one of their own.
double power_of(const GemmModel& model, NumberFormat format) {
  if (!model.power) return 0;
  for (const QuantisedGemm& q : model.quantised)
    if (q.format == format && q.power) return q.power->value;
  return model.power->value;
}

Cost product_time(const GemmModel& model, const Gpu& gpu, const Gemm& g, double power,
                  double sustained) {
  auto [parameters, source] = parameters_for(model, g);
  double time = std::max(gemm_time(parameters, gpu, g, power).value * sustained,
                         without_tensor_cores(gpu, g).value);
  if (g.batch > 1) source = weaker(source, Source::transferred);
  if (const GroupedGemm* of = g.grouped ? grouped_for(model, g.format) : nullptr) {
    time *= of->time.value;
    source = weaker(parameters.provenance.source, of->time.source);
    if (of->format != g.format) source = weaker(source, Source::transferred);
  }
  if (g.m > model.largest_m || g.n > model.largest_n || g.k > model.largest_k)
    source = Source::estimate;
  if (g.pass != GemmPass::forward) {
    const Factor& factor =
        g.pass == GemmPass::input_gradient ? model.input_gradient : model.weight_gradient;
    time *= factor.value;
    source = weaker(source, factor.source);
  }
  if (!model.corrections.empty() && !is_quantised(g.format) && g.batch == 1) {
    const Near near = corrected(model.corrections, g);
    time *= std::exp(near.log_ratio);
    if (near.weight == 1) source = Source::measured;
  }
  return {Seconds{time}, source};
}

}  // namespace

Cost gemm_time(const GemmModel& model, const Gpu& gpu, const Gemm& g) {
  return product_time(model, gpu, g, power_of(model, g.format), model.sustained.value);
}

Seconds burst_time(const GemmModel& model, const Gpu& gpu, const Gemm& g) {
  return product_time(model, gpu, g, 0, 1).time;
}

}  // namespace mllmsim::costs
