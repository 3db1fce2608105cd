#include "cost_models/fit/fit.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "cost_models/fit/fit_tools.hpp"
#include "sim/base/errors.hpp"
#include "sim/base/quantile.hpp"

namespace mllmsim::fit {
namespace {

// Of a machine whose memory was not measured: A100 has 153, H100 295, CPUs 10 to 50.
constexpr double kFlopsPerByte = 100;

// Names the files of `raw` in every part that was fitted to them: fits leave `from` empty.
void name_sources(const RawData& raw, costs::Calibration& c) {
  const auto name = [&](const char* part, costs::Provenance& p) {
    const auto found = raw.sources.find(part);
    if (!p.from.empty() || found == raw.sources.end()) return;
    for (const std::string& source : found->second) p.from += (p.from.empty() ? "" : "; ") + source;
  };
  name("gemm", c.gemm.large.provenance);
  name("gemm", c.gemm.all.provenance);
  for (costs::QuantisedGemm& q : c.gemm.quantised)
    name("gemm", q.large.provenance), name("gemm", q.all.provenance);
  for (costs::AttentionKernel& k : c.attention.kernels) name("attention", k.provenance);
  for (costs::MemoryOperation& o : c.memory_bound.operations) name("memory_bound", o.provenance);
  name("collectives", c.collectives.node_provenance);
  for (costs::NetworkCollective& n : c.collectives.network) name("collectives", n.provenance);
  name("point_to_point", c.p2p.node_provenance);
  name("point_to_point", c.p2p.network_provenance);
  for (costs::ExchangeModel& x : c.token_exchange) name("token_exchange", x.provenance);
}

// FLOP/s of the fastest tile of the form: what a product can come close to, its own losses aside.
double fastest(const costs::GemmModel& model, const costs::Gpu& gpu) {
  double rate = 0;
  for (const costs::GemmParameters* p : {&model.large, &model.all})
    for (const costs::GemmTile& tile : p->tiles) rate = std::max(rate, tile.rate);
  const double quickest = std::min(
      {1.0, model.input_gradient.value, model.weight_gradient.value, model.sustained.value});
  return rate * gpu.peak.value / quickest;
}

// Rounded up to three digits: more are not known, and those that a file keeps of rates and peak
// must not make the form faster than the peak.
double rounded_up(double value) {
  const double digit = std::pow(10, std::floor(std::log10(value)) - 2);
  return digit * std::ceil(value * (1 + 1e-4) / digit);
}

// The fastest product that was measured is not the fastest there is. The peak of a machine without
// a data sheet is what the form gives at most, in any pass, and what corrections make of it where
// products were measured; times stay as they were fitted.
void set_peak(const RawData& raw, costs::Calibration& c) {
  double peak = std::max(c.gpu.peak.value, fastest(c.gemm, c.gpu));
  for (const GemmMeasurement& g : raw.gemm)
    peak = std::max(peak,
                    g.kernel.flops().value / costs::gemm_time(c.gemm, c.gpu, g.kernel).time.value);
  const double raised = rounded_up(peak) / c.gpu.peak.value;
  c.gpu.peak.value *= raised;
  for (costs::GemmParameters* p : {&c.gemm.large, &c.gemm.all})
    for (costs::GemmTile& tile : p->tiles) tile.rate /= raised;
  for (costs::AttentionKernel& k : c.attention.kernels) k.rate /= raised;
}

}  // namespace

costs::Calibration fit(const RawData& raw, costs::Calibration base,
                       const MeasuredNetwork& network) {
  costs::Calibration c = std::move(base);
  const std::string gpu_name = c.header.gpu;
  c.header = raw.header;
  if (c.header.gpu.empty()) c.header.gpu = gpu_name;
  const auto wide = [](const GemmMeasurement& g) { return g.kernel.format == NumberFormat::fp32; };
  if (!raw.gemm.empty() && std::all_of(raw.gemm.begin(), raw.gemm.end(), wide))
    c.gpu.products_in = NumberFormat::fp32;
  fit_gemm(raw.gemm, c.gpu, c.gemm);
  fit_attention(raw.attention, c.gpu, c.attention);
  fit_memory_bound(raw.memory_bound, c.gpu, c.memory_bound);
  if (!raw.launch.empty() && raw.memory_bound.empty()) {
    std::vector<double> launches;
    for (const Seconds s : raw.launch) launches.push_back(s.value);
    c.memory_bound.launch = {median(launches)};
  }
  fit_collectives(raw.collectives, c.gpu, network, c.collectives);
  fit_p2p(raw.p2p, c.gpu, c.p2p);
  fit_experts(raw.experts, raw.gemm, c.gpu, c.memory_bound, c.gemm);
  fit_exchange(raw.exchanges, c.token_exchange);
  if (!raw.overlap.empty())
    c.overlap = {median(raw.overlap), costs::Source::interpolated, "measured"};
  name_sources(raw, c);
  if (c.gpu.sheet_measured) set_peak(raw, c);
  return c;
}

costs::Gpu measured_sheet(const RawData& raw) {
  double flops = 0, memory = 0, link = 0;
  for (const GemmMeasurement& m : raw.gemm)
    flops = std::max(flops, m.kernel.flops().value / m.time.value);
  for (const Measurement<costs::MemoryBound>& m : raw.memory_bound)
    memory = std::max(memory, static_cast<double>(m.kernel.bytes.value) / m.time.value);
  for (const Measurement<costs::Collective>& m : raw.collectives)
    link = std::max(link, static_cast<double>(m.kernel.bytes.value) / m.time.value);
  if (flops == 0)
    throw UserError("", "gemm",
                    fmt::format("no data sheet knows \"{}\", and a machine without one takes its "
                                "peak from products: measure some (\"part\":\"gemm\"), or give "
                                "--gpu one of `mllmsim list gpus`",
                                raw.header.gpu));
  std::string from = "no data sheet: the best rates measured";
  if (memory == 0) {
    memory = flops / kFlopsPerByte;
    from += fmt::format(", memory at {} FLOP per byte (estimate)", kFlopsPerByte);
  }
  if (link == 0) {
    link = memory;
    from += ", neighbours as fast as memory (estimate)";
  }
  costs::Gpu sheet{{flops}, {memory}, {link}, 1, from, {}, {}};
  sheet.sheet_measured = true;
  return sheet;
}

}  // namespace mllmsim::fit
