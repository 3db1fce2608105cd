#include "cost_models/calibration/calibration.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "sim/base/errors.hpp"

namespace mllmsim::costs {
namespace {

void demote(Source& source) { source = weaker(source, Source::transferred); }

void scale_curve(SizeCurve& curve, double factor) {
  curve.latency = curve.latency * factor;
  for (SizePoint& p : curve.points) p.time = p.time * factor;
}

std::vector<GemmParameters*> all_parameters(GemmModel& model) {
  std::vector<GemmParameters*> out{&model.large, &model.all};
  for (QuantisedGemm& q : model.quantised) out.insert(out.end(), {&q.large, &q.all});
  return out;
}

void scale_gemm(Calibration& c, double factor) {
  double fastest = 0;
  for (const GemmParameters* p : all_parameters(c.gemm))
    for (const GemmTile& tile : p->tiles) fastest = std::max(fastest, tile.rate / factor);
  const bool other_gpu = factor < 1 && fastest > 1;
  for (GemmParameters* p : all_parameters(c.gemm)) {
    p->launch = p->launch * factor;
    p->split_cost = p->split_cost * factor;
    p->derate_time = p->derate_time * factor;
    p->memory_efficiency /= factor;
    if (!other_gpu)
      for (GemmTile& tile : p->tiles) tile.rate /= factor;
    demote(p->provenance.source);
  }
  if (!other_gpu) return;
  for (FlopsPerSecond* peak : {&c.gpu.peak, &c.gpu.peak_fp8, &c.gpu.peak_fp4})
    peak->value /= factor;
  for (AttentionKernel& k : c.attention.kernels) k.rate *= factor;  // as fast as before
  c.gpu.from += fmt::format("; peaks divided by {:g} with the times of GEMMs", factor);
}

void scale_attention(AttentionModel& model, double factor) {
  for (AttentionKernel& k : model.kernels) {
    k.launch = k.launch * factor;
    k.rate /= factor;
    demote(k.provenance.source);
  }
}

void scale_memory_bound(MemoryBoundModel& model, double factor) {
  model.launch = model.launch * factor;
  for (MemoryOperation& o : model.operations) {
    for (RowEfficiency& r : o.rows) r.efficiency /= factor;
    demote(o.provenance.source);
  }
}

void scale_collectives(CollectiveModel& model, double factor) {
  for (NodeCollective& n : model.node) scale_curve(n.curve, factor);
  demote(model.node_provenance.source);
  for (NetworkCollective& n : model.network) {
    for (NetworkLine& l : n.lines)
      l = {l.tree,
           l.base * factor,
           l.network_step * factor,
           l.node_step * factor,
           l.idle_efficiency / factor,
           l.busy_efficiency / factor};
    demote(n.provenance.source);
  }
}

void scale_p2p(P2pModel& model, double factor) {
  scale_curve(model.node, factor);
  model.network_latency = model.network_latency * factor;
  model.message_bandwidth = model.message_bandwidth / factor;
  model.nic_efficiency /= factor;
  demote(model.node_provenance.source);
  demote(model.network_provenance.source);
}

}  // namespace

Calibration transferred(Calibration from, const std::string& gpu_name) {
  Calibration c = std::move(from);
  each_provenance(c, [&](Provenance& p) {
    if (p.source == Source::estimate) return;
    p.source = Source::transferred;
    p.from = fmt::format("{}: {}", c.header.gpu, p.from);
  });
  each_factor(c, [](Factor& f) { demote(f.source); });
  c.header = {};
  c.header.gpu = gpu_name;
  c.gpu = gpu_of(gpu_name);
  return c;
}

void scale(Calibration& c, const std::string& part, double factor) {
  if (!(factor > 0) || !std::isfinite(factor))
    throw UserError("command line", part, "expected a factor above 0");
  if (part == "gemm") return scale_gemm(c, factor);
  if (part == "attention") return scale_attention(c.attention, factor);
  if (part == "memory_bound") return scale_memory_bound(c.memory_bound, factor);
  if (part == "collectives") return scale_collectives(c.collectives, factor);
  if (part == "point_to_point") return scale_p2p(c.p2p, factor);
  throw UserError("command line", part,
                  "expected gemm, attention, memory_bound, collectives or point_to_point");
}

}  // namespace mllmsim::costs
