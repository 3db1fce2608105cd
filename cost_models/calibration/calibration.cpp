#include "cost_models/calibration/calibration.hpp"

#include <fmt/format.h>

#include <cmath>

#include "cost_models/kernels/names.hpp"
#include "sim/base/errors.hpp"

namespace mllmsim::costs {
namespace {

constexpr Seconds us(double value) { return {value * 1e-6}; }

Provenance estimate(std::string from) { return {Source::estimate, std::move(from), 0, 0, 0}; }

GemmModel estimated_gemm() {
  GemmParameters p;
  p.provenance = estimate("efficiencies between those of A100 and H100");
  p.launch = us(2.5);
  p.sharpness = 0.5;
  p.k_overhead = 150;
  p.memory_efficiency = 0.8;
  p.norm = 3;
  p.split_cost = us(3);
  p.derate = 0.1;
  p.derate_time = us(2000);
  p.tiles = {{256, 128, 0.85}, {128, 256, 0.85}, {128, 128, 0.8}, {128, 64, 0.7}, {64, 128, 0.7},
             {256, 64, 0.7},   {64, 256, 0.7},   {64, 64, 0.5},   {64, 32, 0.3},  {32, 64, 0.3},
             {32, 32, 0.2},    {16, 64, 0.15},   {64, 16, 0.15}};
  GemmModel model;
  model.large = model.all = p;
  model.input_gradient = {1, Source::estimate, "same FLOPs in another layout"};
  model.weight_gradient = {1.05, Source::estimate, "fp32 accumulation into the main gradient"};
  model.sustained = {1, Source::estimate, "not measured"};
  return model;
}

AttentionModel estimated_attention() {
  AttentionKernel kernel;
  kernel.head_dim = 128;
  kernel.causal = true;
  kernel.provenance = estimate("FlashAttention charts: 60 % of peak on long sequences");
  kernel.launch = us(6);
  kernel.rate = 0.6;
  kernel.norm = 2;
  return {2, {kernel}, {3, Source::estimate, "cuDNN at head dim 128; 2.5 times the FLOPs"}};
}

MemoryBoundModel estimated_memory_bound() {
  const Provenance copy = estimate("0.87 of peak, as element-wise kernels on A100");
  const Provenance norm =
      estimate("as layer norm on A100: 1330 GB/s at rows of 2048, 905 from 5120");
  const std::vector<RowEfficiency> falling{{2048, 0.652}, {5120, 0.444}};
  MemoryBoundModel model;
  model.launch = us(2.5);
  model.operations = {
      {MemoryOp::elementwise, copy, {{1, 0.87}}},
      {MemoryOp::norm, norm, falling},
      {MemoryOp::norm_backward, norm, falling},
      {MemoryOp::softmax, norm, falling},
      {MemoryOp::embedding, estimate("rows gathered at random: 0.7 of peak"), {{1, 0.7}}},
      {MemoryOp::cross_entropy,
       estimate("0.87 of peak: passes over logits are element-wise kernels and reductions"),
       {{1, 0.87}}},
      {MemoryOp::optimizer, copy, {{1, 0.87}}},
  };
  return model;
}

// latency + bus bytes / bandwidth, at a few sizes.
SizeCurve ring_curve(CollectiveOp op, int ranks, Seconds latency, BytesPerSecond bandwidth) {
  std::vector<SizePoint> points;
  for (double bytes = 1024; bytes <= 1 << 30; bytes *= 4)
    points.push_back({bytes, latency + Seconds{bus_bytes(op, ranks, bytes) / bandwidth.value}});
  return size_curve(points, latency);
}

// Lines of NCCL's LL protocol and of rings and trees with the Simple protocol.
CollectiveModel estimated_collectives(const Gpu& gpu) {
  CollectiveModel model;
  model.nvlink_bandwidth = gpu.nvlink_bandwidth;
  model.node_provenance = estimate("ring at 78 % of NVLink");
  const NetworkLine low_latency{false, us(7), us(2.7), us(0.6), 0.1, 0.1};
  const NetworkLine simple{false, us(10), us(9), us(6), 0.95, 0.85};
  const NetworkLine low_latency_tree{true, us(7), us(5), us(0.6), 0.1, 0.1};
  const NetworkLine tree{true, us(10), us(60), us(6), 0.95, 0.85};
  for (const CollectiveOp op :
       {CollectiveOp::all_gather, CollectiveOp::reduce_scatter, CollectiveOp::all_reduce}) {
    for (const int ranks : {2, 8})
      model.node.push_back(
          {op, ranks, ring_curve(op, ranks, us(10 + ranks), gpu.nvlink_bandwidth * 0.78)});
    std::vector<NetworkLine> lines{low_latency, simple};
    if (op == CollectiveOp::all_reduce) lines = {low_latency, simple, low_latency_tree, tree};
    model.network.push_back({op, estimate("step latencies of NCCL's tuning tables"), 0, lines});
  }
  return model;
}

P2pModel estimated_p2p(const Gpu& gpu) {
  P2pModel model;
  model.nvlink_bandwidth = gpu.nvlink_bandwidth;
  model.node_provenance = estimate("80 % of NVLink");
  const double large = 1 << 30;
  model.node =
      size_curve({{large, us(12) + Seconds{large / (gpu.nvlink_bandwidth.value * 0.8)}}}, us(12));
  model.network_provenance = estimate("one message on a 400 Gb/s NIC reaches 25 GB/s");
  model.network_latency = us(20);
  model.message_bandwidth = {25e9};
  model.nic_efficiency = 0.95;
  return model;
}

// Calls f on the provenance of every part.
template <class F>
void each_provenance(Calibration& c, F f) {
  f(c.gemm.large.provenance);
  f(c.gemm.all.provenance);
  for (AttentionKernel& k : c.attention.kernels) f(k.provenance);
  for (MemoryOperation& o : c.memory_bound.operations) f(o.provenance);
  f(c.collectives.node_provenance);
  for (NetworkCollective& n : c.collectives.network) f(n.provenance);
  f(c.p2p.node_provenance);
  f(c.p2p.network_provenance);
}

void demote(Source& source) { source = weaker(source, Source::transferred); }

void scale_curve(SizeCurve& curve, double factor) {
  curve.latency = curve.latency * factor;
  for (SizePoint& p : curve.points) p.time = p.time * factor;
}

void scale_gemm(GemmModel& model, double factor) {
  for (GemmParameters* p : {&model.large, &model.all}) {
    p->launch = p->launch * factor;
    p->split_cost = p->split_cost * factor;
    p->derate_time = p->derate_time * factor;
    p->memory_efficiency /= factor;
    for (GemmTile& tile : p->tiles) tile.rate /= factor;
    demote(p->provenance.source);
  }
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

Calibration estimated_calibration(const std::string& gpu_name) {
  return estimated_calibration(gpu_name, gpu_of(gpu_name));
}

Calibration estimated_calibration(const std::string& gpu_name, const Gpu& gpu) {
  Calibration c;
  c.header.gpu = gpu_name;
  c.header.description = "Estimated from the data sheet";
  c.gpu = gpu;
  c.gemm = estimated_gemm();
  c.attention = estimated_attention();
  c.memory_bound = estimated_memory_bound();
  c.collectives = estimated_collectives(c.gpu);
  c.p2p = estimated_p2p(c.gpu);
  c.overlap = {1.18, Source::estimate, "NCCL's 16 to 24 channels hold as many of 108 to 132 SMs"};
  return c;
}

Calibration transferred(Calibration from, const std::string& gpu_name) {
  Calibration c = std::move(from);
  each_provenance(c, [&](Provenance& p) {
    if (p.source == Source::estimate) return;
    p.source = Source::transferred;
    p.from = fmt::format("{}: {}", c.header.gpu, p.from);
  });
  for (Factor* f : {&c.gemm.input_gradient, &c.gemm.weight_gradient, &c.gemm.sustained,
                    &c.attention.backward, &c.overlap})
    demote(f->source);
  c.header = {};
  c.header.gpu = gpu_name;
  c.gpu = gpu_of(gpu_name);
  return c;
}

void scale(Calibration& c, const std::string& part, double factor) {
  if (!(factor > 0) || !std::isfinite(factor))
    throw UserError("command line", part, "expected a factor above 0");
  if (part == "gemm") return scale_gemm(c.gemm, factor);
  if (part == "attention") return scale_attention(c.attention, factor);
  if (part == "memory_bound") return scale_memory_bound(c.memory_bound, factor);
  if (part == "collectives") return scale_collectives(c.collectives, factor);
  if (part == "point_to_point") return scale_p2p(c.p2p, factor);
  throw UserError("command line", part,
                  "expected gemm, attention, memory_bound, collectives or point_to_point");
}

}  // namespace mllmsim::costs
