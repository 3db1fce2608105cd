// Grouped products of experts, and DeepEP's exchange of tokens.
//
// Grouped products are those of a batch of alike ones times a factor per format. A serving engine's
// layer of kSmallestRows rows per expert and more takes
//   engine + factor * products as the GEMM model has them + kernels between the products,
// where `engine` (sorting tokens, launches) is fitted with the factor and dropped: layers have such
// kernels themselves. Kernels between: rows gathered, activation, rows summed, as memory-bound ones
// of this machine. Where grouped products were measured alone, the factor is the median of their
// ratios.
//
// The exchange (exchange.hpp) is fitted to the lines of one number of SMs: Megatron's default of
// 20, or what is nearest.
#include <algorithm>
#include <cmath>
#include <map>

#include "cost_models/fit/fit.hpp"
#include "cost_models/fit/fit_tools.hpp"
#include "cost_models/fit/least_squares.hpp"
#include "cost_models/kernels/names.hpp"
#include "sim/base/quantile.hpp"

namespace mllmsim::fit {
namespace {

constexpr std::int64_t kSmallestRows = 128;
constexpr std::size_t kFewest = 20;
constexpr int kUsualSms = 20;  // moe_deepep_num_sms

Seconds between(const ExpertsMeasurement& e, const costs::Gpu& gpu,
                const costs::MemoryBoundModel& memory) {
  const auto moved = [&](std::int64_t values) {
    return costs::memory_bound_time(memory, gpu,
                                    {costs::MemoryOp::elementwise, Bytes{values * kHalf}})
        .time;
  };
  return moved(2 * e.rows * e.hidden_size) + moved(3 * e.rows * e.width) +
         moved((e.rows + e.tokens) * e.hidden_size);
}

struct ExpertLayer {
  Seconds products, between, measured;

  Seconds time(const Eigen::VectorXd& x) const {
    return Seconds{Bounded{1e-7, 1e-3}(x[0])} + products * Bounded{0.2, 5}(x[1]) + between;
  }
};

ExpertLayer layer_of(const ExpertsMeasurement& e, const costs::Gpu& gpu,
                     const costs::MemoryBoundModel& memory, const costs::GemmModel& model) {
  const std::int64_t rows = (e.rows + e.experts - 1) / e.experts;
  const costs::Gemm up{rows,      2 * e.width, e.hidden_size, costs::GemmPass::forward,
                       e.experts, e.format};
  const costs::Gemm down{rows,      e.hidden_size, e.width, costs::GemmPass::forward,
                         e.experts, e.format};
  return {costs::burst_time(model, gpu, up) + costs::burst_time(model, gpu, down),
          between(e, gpu, memory), e.time};
}

// Of layers that take as long as their products, not their launches.
double factor_of(const std::vector<ExpertLayer>& layers) {
  Eigen::VectorXd start(2);
  start << std::log(20e-6), 0;
  const Eigen::VectorXd x = minimise(
      [&](const Eigen::VectorXd& candidate) {
        Eigen::VectorXd r(static_cast<Eigen::Index>(layers.size()));
        for (std::size_t i = 0; i < layers.size(); ++i)
          r[static_cast<Eigen::Index>(i)] =
              log_error(layers[i].time(candidate), layers[i].measured);
        return r;
      },
      start);
  return Bounded{0.2, 5}(x[1]);
}

costs::ExchangeLine line_of(const Eigen::VectorXd& x) {
  return {{Bounded{1e-7, 1e-3}(x[0])}, {Bounded{1e-13, 1e-6}(x[1])}, {Bounded{1e9, 1e14}(x[2])}};
}

Seconds time_of(const costs::ExchangeLine& line, const costs::TokenExchange& x) {
  costs::ExchangeModel model;
  model.dispatch = model.combine = line;
  return costs::exchange_time(model, x).time;
}

}  // namespace

void fit_experts(const std::vector<ExpertsMeasurement>& raw,
                 const std::vector<GemmMeasurement>& gemms, const costs::Gpu& gpu,
                 const costs::MemoryBoundModel& memory, costs::GemmModel& model) {
  std::map<NumberFormat, std::vector<ExpertLayer>> layers;
  std::map<NumberFormat, std::vector<double>> alone;
  for (const ExpertsMeasurement& e : raw)
    if (gpu.peak_of(e.format).value > 0 && e.rows >= kSmallestRows * e.experts)
      layers[e.format].push_back(layer_of(e, gpu, memory, model));
  for (const GemmMeasurement& g : gemms) {
    costs::Gemm alike = g.kernel;
    alike.grouped = false;
    if (g.kernel.grouped && !g.sustained)
      alone[alike.format].push_back(g.time / costs::burst_time(model, gpu, alike));
  }
  const auto take = [&](NumberFormat format, double factor, const char* from) {
    auto at = std::find_if(model.grouped.begin(), model.grouped.end(),
                           [&](const costs::GroupedGemm& g) { return g.format >= format; });
    if (at == model.grouped.end() || at->format != format)
      at = model.grouped.insert(at, {format, {}});
    at->time = {factor, costs::Source::interpolated, from};
  };
  for (const auto& [format, measured] : layers)
    if (measured.size() >= kFewest)
      take(format, factor_of(measured),
           "a serving engine's expert layers of 128 rows per expert and more");
  for (const auto& [format, ratios] : alone)
    if (ratios.size() >= kFewest) take(format, median(ratios), "measured");
}

void fit_exchange(const std::vector<ExchangeMeasurement>& raw,
                  std::vector<costs::ExchangeModel>& model) {
  if (raw.size() < kFewest) return;
  int sms = raw.front().sms;
  for (const ExchangeMeasurement& x : raw)
    if (std::abs(x.sms - kUsualSms) < std::abs(sms - kUsualSms)) sms = x.sms;
  costs::ExchangeModel fitted;
  fitted.sms = sms;
  Errors errors;
  std::size_t all = 0;
  for (const bool combine : {false, true}) {
    std::vector<ExchangeMeasurement> points, test;
    for (const ExchangeMeasurement& x : raw) {
      if (x.sms != sms || x.kernel.combine != combine) continue;
      fitted.ranks = x.kernel.group.ranks;
      const std::uint64_t hash = shape_hash(
          {x.kernel.tokens, x.kernel.bytes, std::llround(x.kernel.ranks_per_token * 1000)});
      (held_out(hash) ? test : points).push_back(x);
    }
    if (points.size() < kFewest) return;
    all += points.size() + test.size();
    Eigen::VectorXd start(3);
    start << std::log(30e-6), std::log(1e-9), std::log(5e11);
    const Eigen::VectorXd found = minimise(
        [&](const Eigen::VectorXd& x) {
          const costs::ExchangeLine line = line_of(x);
          Eigen::VectorXd r(static_cast<Eigen::Index>(points.size()));
          for (std::size_t i = 0; i < points.size(); ++i)
            r[static_cast<Eigen::Index>(i)] =
                log_error(time_of(line, points[i].kernel), points[i].time);
          return r;
        },
        start);
    (combine ? fitted.combine : fitted.dispatch) = line_of(found);
    for (const ExchangeMeasurement& x : test) errors.add(time_of(line_of(found), x.kernel), x.time);
  }
  fitted.provenance = errors.provenance(all);
  model = {fitted};
}

}  // namespace mllmsim::fit
