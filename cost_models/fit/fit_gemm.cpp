// Fits GemmParameters twice (large shapes, all shapes) for every format, and the factors of the
// backward passes.
//
// A serving engine's GEMM below 16 bits takes longer than the product by the kernel that quantises
// its input,
//   overhead = a * m * k / memory bandwidth,
// with a, in bytes per value, fitted and then dropped: layers have that kernel themselves. It shows
// where m and n change places: the product takes as long, the engine does not.
#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <tuple>

#include "cost_models/fit/fit.hpp"
#include "cost_models/fit/fit_tools.hpp"
#include "cost_models/fit/least_squares.hpp"
#include "sim/base/quantile.hpp"

namespace mllmsim::fit {
namespace {

constexpr std::size_t kPointsToFit = 3000;  // more change nothing: a few hundred are enough
constexpr std::size_t kFewestGemms = 20;
constexpr std::size_t kMostCorrections = 1000;  // more are a table of others, not a user's shapes

// A tile shape and which of the fitted rates it has: a tile and its transpose share one.
struct Candidate {
  int m, n;
  int rate;
};
constexpr std::array kCandidates{
    Candidate{256, 128, 0}, Candidate{128, 256, 1}, Candidate{128, 128, 2}, Candidate{128, 64, 3},
    Candidate{64, 128, 3},  Candidate{256, 64, 4},  Candidate{64, 256, 4},  Candidate{64, 64, 5},
    Candidate{64, 32, 6},   Candidate{32, 64, 6},   Candidate{32, 32, 7},   Candidate{16, 64, 8},
    Candidate{64, 16, 8}};
constexpr std::array kStartRates{0.85, 0.85, 0.8, 0.7, 0.8, 0.6, 0.5, 0.4, 0.3};
constexpr int kLargeRates = 6;  // tiles below 64 x 64 play no part in large products
constexpr int kScalars = 8;

// What small tiles may take of an SM's peak: the form gives them more where large ones have
// overheads that they do not.
constexpr double kMostRate = 1.5;

costs::GemmParameters unpack(const Eigen::VectorXd& x, double most_rate) {
  constexpr Bounded time{1e-9, 1e-1}, share{0.01, 1.5}, overhead{1, 2000}, power{0.1, 20};
  const Bounded rate{0.01, most_rate};
  costs::GemmParameters p;
  p.launch = {time(x[0])};
  p.sharpness = 1 / (1 + std::exp(-x[1]));
  p.k_overhead = overhead(x[2]);
  p.memory_efficiency = share(x[3]);
  p.norm = 1 + power(x[4]);
  p.split_cost = {time(x[5])};
  p.derate = Bounded{1e-4, 1}(x[6]);
  p.derate_time = {time(x[7])};
  const auto rates = static_cast<int>(x.size()) - kScalars;
  for (const Candidate& c : kCandidates)
    if (c.rate < rates) p.tiles.push_back({c.m, c.n, rate(x[kScalars + c.rate])});
  return p;
}

Eigen::VectorXd start(int rates) {
  Eigen::VectorXd x(kScalars + rates);
  x.head(kScalars) << std::log(4e-6), 2, std::log(100.), std::log(0.8), std::log(1.5),
      std::log(3e-6), std::log(0.1), std::log(500e-6);
  for (int i = 0; i < rates; ++i)
    x[kScalars + i] = std::log(kStartRates[static_cast<std::size_t>(i)]);
  return x;
}

std::uint64_t hash(const GemmMeasurement& g) {
  return shape_hash({g.kernel.m, g.kernel.n, g.kernel.k});
}

// The product and, in a serving engine, the kernel before it.
struct Served {
  costs::GemmParameters gemm;
  double quantised_bytes = 0;  // per value of the input

  Seconds time(const costs::Gpu& gpu, const costs::Gemm& g) const {
    return costs::gemm_time(gemm, gpu, g) +
           Seconds{quantised_bytes * static_cast<double>(g.m) * static_cast<double>(g.k) /
                   gpu.memory_bandwidth.value};
  }
};

Served unpack_served(const Eigen::VectorXd& x, bool serving, double most_rate) {
  if (!serving) return {unpack(x, most_rate), 0};
  return {unpack(x.head(x.size() - 1), most_rate), Bounded{0.01, 50}(x[x.size() - 1])};
}

bool above_peak(const costs::GemmParameters& p, const costs::Gpu& gpu, NumberFormat format) {
  costs::Gemm large{8192, 8192, 8192};
  large.format = format;
  return large.flops().value / costs::gemm_time(p, gpu, large).value > gpu.peak_of(format).value;
}

// Keeps the parameters of the base if there are too few points.
void fit_parameters(std::vector<GemmMeasurement> points, const costs::Gpu& gpu, int rates,
                    costs::GemmParameters& parameters) {
  if (points.size() < kFewestGemms) return;
  const std::size_t all = points.size();
  const bool serving = std::any_of(points.begin(), points.end(), [](const GemmMeasurement& g) {
    return g.serving && is_quantised(g.kernel.format);
  });
  std::stable_sort(points.begin(), points.end(),
                   [](const auto& a, const auto& b) { return hash(a) < hash(b); });
  const auto test = std::stable_partition(points.begin(), points.end(),
                                          [](const auto& g) { return !held_out(hash(g)); });
  const auto fitted = std::min(kPointsToFit, static_cast<std::size_t>(test - points.begin()));
  Eigen::VectorXd from = start(rates);
  if (serving) {
    from.conservativeResize(from.size() + 1);
    from[from.size() - 1] = std::log(4.);
  }
  const auto fit = [&](double most_rate) {
    const Eigen::VectorXd x = minimise(
        [&](const Eigen::VectorXd& candidate) {
          const Served s = unpack_served(candidate, serving, most_rate);
          Eigen::VectorXd r(static_cast<Eigen::Index>(fitted));
          for (std::size_t i = 0; i < fitted; ++i)
            r[static_cast<Eigen::Index>(i)] =
                log_error(s.time(gpu, points[i].kernel), points[i].time);
          return r;
        },
        from);
    return unpack_served(x, serving, most_rate);
  };
  // Few or scattered points leave open what products beyond them reach: no more than the GPU does,
  // and of a machine without a data sheet no more than the best of them did.
  Served fitted_to = fit(gpu.sheet_measured ? 1 : kMostRate);
  if (above_peak(fitted_to.gemm, gpu, points.front().kernel.format)) fitted_to = fit(1);
  parameters = fitted_to.gemm;
  Errors errors;
  for (auto g = test; g != points.end(); ++g) errors.add(fitted_to.time(gpu, g->kernel), g->time);
  parameters.provenance = errors.provenance(all);
}

struct BySize {
  std::vector<GemmMeasurement> all, large;

  void add(const GemmMeasurement& g) {
    all.push_back(g);
    if (std::min({g.kernel.m, g.kernel.n, g.kernel.k}) >= costs::kLargeGemm) large.push_back(g);
  }
  template <class Parameters>
  void fit(const costs::Gpu& gpu, Parameters& parameters) {
    fit_parameters(std::move(large), gpu, kLargeRates, parameters.large);
    fit_parameters(std::move(all), gpu, static_cast<int>(kStartRates.size()), parameters.all);
    // Too few large ones to fit them alone: those among all are better than an estimate.
    if (parameters.large.provenance.source > costs::Source::interpolated &&
        parameters.all.provenance.source <= costs::Source::interpolated)
      parameters.large = parameters.all;
  }
};

// Into the format's place in the list: parameters of bf16 are where a new one starts from, for
// shapes that were not measured.
costs::QuantisedGemm& quantised(costs::GemmModel& model, NumberFormat format) {
  auto at = std::find_if(model.quantised.begin(), model.quantised.end(),
                         [&](const costs::QuantisedGemm& q) { return q.format >= format; });
  if (at == model.quantised.end() || at->format != format) {
    at = model.quantised.insert(at, {format, model.large, model.all});
    for (costs::GemmParameters* p : {&at->large, &at->all})
      p->provenance = {costs::Source::estimate, "as bf16, at this format's peak", 0, 0, 0};
  }
  return *at;
}

// Typical ratio of measured to predicted time over the points that `select` takes.
template <class Select>
void fit_factor(const std::vector<GemmMeasurement>& raw, const costs::GemmModel& model,
                const costs::Gpu& gpu, Select select, costs::Factor& factor) {
  std::vector<double> ratios;
  for (const GemmMeasurement& g : raw) {
    if (!select(g)) continue;
    const bool large = std::min({g.kernel.m, g.kernel.n, g.kernel.k}) >= costs::kLargeGemm;
    ratios.push_back(g.time / costs::gemm_time(large ? model.large : model.all, gpu, g.kernel));
  }
  if (!ratios.empty()) factor = {median(ratios), costs::Source::interpolated, "measured"};
}

// Large products of 0.1 to 3 ms run in bursts, before the power limit answers; those of 30 ms and
// more were repeated until it had set the clock. Of both the best tenth, which shapes do not bind.
void fit_power(const std::vector<GemmMeasurement>& raw, costs::GemmModel& model) {
  constexpr std::int64_t kSmallest = 2048;
  constexpr Seconds kBurst{1e-4}, kBurstEnd{3e-3}, kLong{30e-3};
  constexpr std::size_t kFewestLong = 8;
  std::vector<double> bursts, long_ones;
  for (const GemmMeasurement& g : raw) {
    const costs::Gemm& k = g.kernel;
    if (g.sustained || k.grouped || k.batch > 1 || is_quantised(k.format) ||
        k.pass != costs::GemmPass::forward || std::min({k.m, k.n, k.k}) < kSmallest)
      continue;
    const double rate = k.flops().value / g.time.value;
    if (g.time >= kLong) long_ones.push_back(rate);
    if (g.time >= kBurst && g.time < kBurstEnd) bursts.push_back(rate);
  }
  if (bursts.size() < kFewestGemms || long_ones.size() < kFewestLong) return;
  model.power = costs::Factor{
      std::max(1.0, quantile(bursts, 0.9) / quantile(long_ones, 0.9)), costs::Source::interpolated,
      "rate of products of 0.1 to 3 ms over that of 30 ms and more (best tenths)"};
}

// Where a user's own few shapes were measured, what the form misses of them (gemm.hpp). A form that
// was not fitted is corrected as well. Errors are those on held-out shapes, corrected by the
// others.
void correct(const std::vector<GemmMeasurement>& raw, const costs::Gpu& gpu,
             costs::GemmModel& model) {
  std::vector<const GemmMeasurement*> points;
  for (const GemmMeasurement& g : raw)
    if (!g.sustained && !g.serving && !g.kernel.grouped && !is_quantised(g.kernel.format))
      points.push_back(&g);
  std::ranges::sort(points, {}, [](const GemmMeasurement* g) {
    return std::tuple(g->kernel.m, g->kernel.n, g->kernel.k, g->kernel.pass, g->time.value);
  });
  model.corrections.clear();
  if (points.empty() || points.size() > kMostCorrections) return;
  std::vector<costs::GemmCorrection> all, fitted;
  for (const GemmMeasurement* g : points) {
    const costs::Gemm& k = g->kernel;
    all.push_back({k.m, k.n, k.k, k.pass, std::log(g->time / costs::burst_time(model, gpu, k))});
    if (!held_out(hash(*g))) fitted.push_back(all.back());
  }
  model.corrections = std::move(fitted);
  Errors large, small;
  for (const GemmMeasurement* g : points) {
    if (!held_out(hash(*g))) continue;
    const bool is_large = std::min({g->kernel.m, g->kernel.n, g->kernel.k}) >= costs::kLargeGemm;
    const Seconds predicted = costs::burst_time(model, gpu, g->kernel);
    small.add(predicted, g->time);
    if (is_large) large.add(predicted, g->time);
  }
  const auto report = [](const Errors& errors, costs::Provenance& p) {
    if (p.source == costs::Source::interpolated && !errors.empty())
      p = errors.provenance(static_cast<std::size_t>(p.points));
  };
  report(large, model.large.provenance);
  report(small, model.all.provenance);
  model.corrections = std::move(all);
}

}  // namespace

void fit_gemm(const std::vector<GemmMeasurement>& raw, const costs::Gpu& gpu,
              costs::GemmModel& model) {
  std::map<NumberFormat, BySize> formats;
  for (const GemmMeasurement& g : raw) {
    if (g.sustained || g.kernel.grouped) continue;
    model.largest_m = std::max(model.largest_m, g.kernel.m);
    model.largest_n = std::max(model.largest_n, g.kernel.n);
    model.largest_k = std::max(model.largest_k, g.kernel.k);
    if (g.kernel.pass == costs::GemmPass::forward) formats[g.kernel.format].add(g);
  }
  for (auto& [format, points] : formats) {
    if (!is_quantised(format))
      points.fit(gpu, model);
    else if (gpu.peak_of(format).value > 0)
      points.fit(gpu, quantised(model, format));
  }
  const auto burst = [](costs::GemmPass pass) {
    return [pass](const GemmMeasurement& g) {
      return g.kernel.pass == pass && !g.sustained && !g.kernel.grouped &&
             !is_quantised(g.kernel.format);
    };
  };
  fit_factor(raw, model, gpu, burst(costs::GemmPass::input_gradient), model.input_gradient);
  fit_factor(raw, model, gpu, burst(costs::GemmPass::weight_gradient), model.weight_gradient);
  const auto sustained = [](const GemmMeasurement& g) {
    return g.sustained && !g.kernel.grouped && g.kernel.pass == costs::GemmPass::forward &&
           !is_quantised(g.kernel.format);
  };
  fit_power(raw, model);
  if (std::ranges::any_of(raw, sustained)) {
    model.power.reset();  // it is in what was measured as sustained
    fit_factor(raw, model, gpu, sustained, model.sustained);
  }
  if (!raw.empty()) correct(raw, gpu, model);
}

}  // namespace mllmsim::fit
