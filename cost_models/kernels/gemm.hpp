// Time of a matrix product: the fastest tiling a library could pick, quantised in waves over SMs.
//
//   tiles   = batch * ceil(m / tile_m) * ceil(n / tile_n) * split
//   waves   = x + sharpness * (ceil(x) - x),  x = max(1, tiles / SMs)
//   compute = waves * 2 * tile_m * tile_n * (k / split + k_overhead) / (rate_tile * peak / SMs)
//   memory  = (b (m k + k n) + c m n + 4 m n * 2 (split - 1)) * batch / (memory bandwidth * e)
//   busy    = min over tiles and split of (compute^p + memory^p)^(1/p) + (split > 1) * split_cost
//   time    = launch + busy * max(slowed(busy), power * slowed(1 ms))
//   slowed(t) = 1 + derate * t / (t + derate_time)
//
// b is the bytes of an input (2 in bf16), peak that of the inputs' format. c is 2 bytes (bf16
// output), or 8 for a weight gradient, which reads and writes an fp32 main gradient. Batches of
// widths that are no multiples of 8 load less at a time (an estimate: 2 or 4 x as long). The derate
// is the clock falling within a measurement, power how far it has fallen when products run without
// a pause, as in training. A pass has a further factor.
//
// Every format has parameters of its own, and may have a power. Where it was not measured, those of
// fp8 stand for formats of 8 bits (transferred), and those of bf16 for any (an estimate).
// What was measured on the user's own machine corrects the form near it: of products of one pass,
// with d their distance in octaves, sqrt(sum log2(size / size)^2 over m, n, k),
//
//   time *= exp(sum_i w_i log_ratio_i / (sum_i w_i + 0.05)),  w_i = exp(-d_i^2 / (2 * 0.35^2)).
//
// Left out: cache reuse between tiles, layouts beyond the factor, clusters and persistent kernels.
#pragma once

#include <optional>
#include <vector>

#include "cost_models/kernels/gpus.hpp"
#include "cost_models/kernels/provenance.hpp"

namespace mllmsim::costs {

struct GemmTile {
  int m = 0, n = 0;
  double rate = 0;  // of an SM's peak while the tile runs
};

struct GemmParameters {
  Provenance provenance;
  Seconds launch{};
  double sharpness = 1;
  double k_overhead = 0;
  double memory_efficiency = 0;
  double norm = 2;  // p
  Seconds split_cost{};
  double derate = 0;
  Seconds derate_time{};
  std::vector<GemmTile> tiles;
};

// Of products whose inputs are below 16 bits, already quantised.
struct QuantisedGemm {
  NumberFormat format = NumberFormat::fp8;
  GemmParameters large, all;      // as below
  std::optional<Factor> power{};  // where it was measured and is not bf16's
};

// Experts' products in one launch over what the parameters say of as many alike.
struct GroupedGemm {
  NumberFormat format = NumberFormat::bf16;
  Factor time;
};

// Measured over what the form alone gives.
struct GemmCorrection {
  std::int64_t m = 0, n = 0, k = 0;
  GemmPass pass = GemmPass::forward;
  double log_ratio = 0;
};

struct GemmModel {
  GemmParameters large;  // min(m, n, k) >= kLargeGemm
  GemmParameters all;
  std::int64_t largest_m = 0, largest_n = 0, largest_k = 0;  // measured; beyond is an estimate
  Factor input_gradient, weight_gradient;
  // Products that last until the power limit has set the clock over bursts of about 1 ms; without
  // it bursts are taken to last.
  std::optional<Factor> power{};
  Factor sustained;  // training, or seconds of products, over what power leaves
  std::vector<QuantisedGemm> quantised{};  // by format, those that were measured
  std::vector<GroupedGemm> grouped{};      // the same; 1 for others
  std::vector<GemmCorrection> corrections{};
};
inline constexpr std::int64_t kLargeGemm = 512;

Seconds gemm_time(const GemmParameters& parameters, const Gpu& gpu, const Gemm& gemm,
                  double power = 0);
Cost gemm_time(const GemmModel& model, const Gpu& gpu, const Gemm& gemm);
// In bursts, as it was measured.
Seconds burst_time(const GemmModel& model, const Gpu& gpu, const Gemm& gemm);

}  // namespace mllmsim::costs
