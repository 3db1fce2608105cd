// Times from a calibration file and the cluster's bandwidths.
//
//   GEMM           t = launch + max(flops / (peak * efficiency), bytes / memory bandwidth)
//   attention      t = launch + executed flops / (peak * efficiency); causal executes half
//   memory bound   t = launch + bytes / (memory bandwidth * efficiency of the op)
//   collective     t = latency + steps * step latency + bus factor * bytes / bus bandwidth
//                  bus factor (n-1)/n, twice that for all-reduce; bus bandwidth from NVLink inside
//                  a node; across nodes also from the NICs the group's GPUs have, shared with its
//                  siblings
//   point to point t = latency + bytes / bandwidth of the route
#include "cost_models/kernel_costs.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include "cost_models/json_reader.hpp"

namespace mllmsim {
namespace {

constexpr double kMicro = 1e-6;

struct Parameters {
  double peak = 0, memory_bandwidth = 0;  // FLOP/s, byte/s
  double launch = 0;                      // s
  double gemm_efficiency = 0, weight_gradient_factor = 1;
  double attention_causal = 0, attention_full = 0, attention_backward = 0;  // efficiencies
  double elementwise = 0, norm = 0;
  double node_latency = 0, network_latency = 0, step_latency = 0;  // s
  double node_efficiency = 0, node_all_reduce_efficiency = 0, network_efficiency = 0;
  double node_message_latency = 0, network_message_latency = 0, node_message_efficiency = 0;
  double network_message_bandwidth = 0;
};

Parameters read(const std::filesystem::path& file) {
  const std::string text = read_text(file);
  const boost::json::value document = parse_json(text, file.string());
  JsonObject root(document, file.string());
  Parameters p;

  JsonObject header = root.object("header");
  for (const char* key : {"gpu", "description", "measured_by", "licence"}) header.text(key);
  header.finish();

  JsonObject gpu = root.object("gpu");
  gpu.text("source");
  p.peak = gpu.positive("peak_tflops") * 1e12;
  p.memory_bandwidth = gpu.positive("memory_gb_per_s") * 1e9;
  p.launch = gpu.positive("launch_us") * kMicro;
  gpu.finish();

  JsonObject gemm = root.object("gemm");
  gemm.text("source");
  p.gemm_efficiency = gemm.positive("efficiency");
  p.weight_gradient_factor = gemm.positive("weight_gradient_factor");
  gemm.finish();

  JsonObject attention = root.object("attention");
  attention.text("source");
  p.attention_causal = attention.positive("causal_efficiency");
  p.attention_full = attention.positive("full_efficiency");
  p.attention_backward = attention.positive("backward_efficiency_ratio");
  attention.finish();

  JsonObject memory = root.object("memory_bound");
  memory.text("source");
  p.elementwise = memory.positive("elementwise_efficiency");
  p.norm = memory.positive("norm_efficiency");
  memory.finish();

  JsonObject collectives = root.object("collectives");
  collectives.text("source");
  p.node_latency = collectives.positive("node_latency_us") * kMicro;
  p.network_latency = collectives.positive("network_latency_us") * kMicro;
  p.step_latency = collectives.positive("step_latency_us") * kMicro;
  p.node_efficiency = collectives.positive("node_efficiency");
  p.node_all_reduce_efficiency = collectives.positive("node_all_reduce_efficiency");
  p.network_efficiency = collectives.positive("network_efficiency");
  collectives.finish();

  JsonObject p2p = root.object("point_to_point");
  p2p.text("source");
  p.node_message_latency = p2p.positive("node_latency_us") * kMicro;
  p.network_message_latency = p2p.positive("network_latency_us") * kMicro;
  p.node_message_efficiency = p2p.positive("node_efficiency");
  p.network_message_bandwidth = p2p.positive("network_gb_per_s") * 1e9;
  p2p.finish();

  root.finish();
  return p;
}

class SimpleKernelCosts : public KernelCosts {
 public:
  SimpleKernelCosts(const Parameters& p, const ClusterSpec& cluster) : p_(p), cluster_(cluster) {}

  Cost gemm(const Gemm& g) const override {
    const auto m = static_cast<double>(g.m), n = static_cast<double>(g.n),
               k = static_cast<double>(g.k);
    const double output = g.pass == GemmPass::weight_gradient ? 8 : 2;  // fp32 read and written
    const double bytes = static_cast<double>(g.batch) * (2 * k * (m + n) + output * m * n);
    const double factor = g.pass == GemmPass::weight_gradient ? p_.weight_gradient_factor : 1;
    const double flop_time = factor * g.flops().value / (p_.peak * p_.gemm_efficiency);
    return estimate(p_.launch + std::max(flop_time, bytes / p_.memory_bandwidth));
  }

  Cost attention(const Attention& a) const override {
    const double executed = a.flops().value * (a.causal ? 0.5 : 1);
    const double forward = p_.peak * (a.causal ? p_.attention_causal : p_.attention_full);
    const double rate = a.backward ? forward * p_.attention_backward : forward;
    return estimate(p_.launch + executed / rate);
  }

  Cost memory_bound(const MemoryBound& k) const override {
    const bool rows = k.op == MemoryOp::norm || k.op == MemoryOp::norm_backward ||
                      k.op == MemoryOp::softmax || k.op == MemoryOp::cross_entropy;
    const double bandwidth = p_.memory_bandwidth * (rows ? p_.norm : p_.elementwise);
    return estimate(p_.launch + static_cast<double>(k.bytes.value) / bandwidth);
  }

  Cost collective(const Collective& c) const override {
    const GroupShape& group = c.group;
    if (group.ranks <= 1) return {Seconds{0}, Source::measured};
    const bool reduce = c.op == CollectiveOp::all_reduce;
    const double node = cluster_.nvlink_bandwidth.value *
                        (reduce ? p_.node_all_reduce_efficiency : p_.node_efficiency);
    const double bandwidth =
        group.nodes == 1 ? node : std::min(node, network_share(group) * p_.network_efficiency);
    const double latency = group.nodes == 1
                               ? p_.node_latency
                               : p_.network_latency + p_.step_latency * (group.nodes - 1);
    const double factor = (reduce ? 2.0 : 1.0) * (group.ranks - 1) / group.ranks;
    return estimate(latency + factor * static_cast<double>(c.bytes.value) / bandwidth);
  }

  Cost point_to_point(const PointToPoint& m) const override {
    const auto bytes = static_cast<double>(m.bytes.value);
    if (m.same_node)
      return estimate(p_.node_message_latency +
                      bytes / (cluster_.nvlink_bandwidth.value * p_.node_message_efficiency));
    const double nic = cluster_.nic_bandwidth.value / std::max(1, m.nic_sharers);
    return estimate(p_.network_message_latency +
                    bytes / std::min(nic, p_.network_message_bandwidth));
  }

  FlopsPerSecond peak() const override { return {p_.peak}; }

 private:
  static Cost estimate(double seconds) { return {Seconds{seconds}, Source::estimate}; }

  // NIC bandwidth that the group's GPUs of one node have together.
  double network_share(const GroupShape& group) const {
    const double nics = cluster_.nics_per_node;
    const double reachable = std::max(1.0, nics * group.ranks_per_node() / cluster_.gpus_per_node);
    return cluster_.nic_bandwidth.value *
           std::min(reachable, nics / std::max(1, group.sibling_groups));
  }

  Parameters p_;
  ClusterSpec cluster_;
};

}  // namespace

std::unique_ptr<KernelCosts> read_kernel_costs(const std::filesystem::path& calibration,
                                               const ClusterSpec& cluster) {
  return std::make_unique<SimpleKernelCosts>(read(calibration), cluster);
}

}  // namespace mllmsim
