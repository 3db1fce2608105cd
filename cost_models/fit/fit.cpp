#include "cost_models/fit/fit.hpp"

#include <fmt/format.h>

#include <algorithm>

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
}

}  // namespace

costs::Calibration fit(const RawData& raw, costs::Calibration base,
                       const MeasuredNetwork& network) {
  costs::Calibration c = std::move(base);
  const std::string gpu_name = c.header.gpu;
  c.header = raw.header;
  if (c.header.gpu.empty()) c.header.gpu = gpu_name;
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
  if (!raw.overlap.empty())
    c.overlap = {median(raw.overlap), costs::Source::interpolated, "measured"};
  name_sources(raw, c);
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
    throw UserError("", "gemm", "a machine without a data sheet needs GEMM measurements");
  std::string from = "no data sheet: the best rates measured";
  if (memory == 0) {
    memory = flops / kFlopsPerByte;
    from += fmt::format(", memory at {} FLOP per byte (estimate)", kFlopsPerByte);
  }
  if (link == 0) {
    link = memory;
    from += ", neighbours as fast as memory (estimate)";
  }
  return {{flops}, {memory}, {link}, 1, from, {}, {}};
}

}  // namespace mllmsim::fit
