#include "cost_models/calibration/estimate.hpp"

#include "sim/base/data_directory.hpp"

namespace mllmsim::costs {
namespace {

// Sizes at which a line is written down as a curve: from messages that are all latency to those
// that are all bandwidth, close enough for the curve to follow the line.
constexpr double kSmallest = 1 << 10, kLargest = 1 << 30, kStep = 4;

SizeCurve ring_curve(CollectiveOp op, const RingEstimate& ring, BytesPerSecond bandwidth) {
  std::vector<SizePoint> points;
  for (double bytes = kSmallest; bytes <= kLargest; bytes *= kStep)
    points.push_back(
        {bytes, ring.latency + Seconds{bus_bytes(op, ring.ranks, bytes) / bandwidth.value}});
  return size_curve(points, ring.latency);
}

CollectiveModel collectives_on(const CollectiveEstimate& e, const Gpu& gpu) {
  CollectiveModel model;
  model.nvlink_bandwidth = gpu.nvlink_bandwidth;
  model.node_provenance = e.node_provenance;
  for (const CollectiveOp op :
       {CollectiveOp::all_gather, CollectiveOp::reduce_scatter, CollectiveOp::all_reduce})
    for (const RingEstimate& ring : e.rings)
      model.node.push_back(
          {op, ring.ranks, ring_curve(op, ring, gpu.nvlink_bandwidth * e.nvlink_efficiency)});
  model.network = e.network;
  return model;
}

P2pModel messages_on(const P2pEstimate& e, const Gpu& gpu) {
  P2pModel model;
  model.nvlink_bandwidth = gpu.nvlink_bandwidth;
  model.node_provenance = e.node_provenance;
  const Seconds largest{kLargest / (gpu.nvlink_bandwidth.value * e.nvlink_efficiency)};
  model.node = size_curve({{kLargest, e.node_latency + largest}}, e.node_latency);
  model.network_provenance = e.network_provenance;
  model.network_latency = e.network_latency;
  model.message_bandwidth = e.message_bandwidth;
  model.nic_efficiency = e.nic_efficiency;
  return model;
}

}  // namespace

Estimate shipped_estimate() {
  return read_estimate(data_directory() / "cost_models" / "estimate.json");
}

Calibration estimated_calibration(const std::string& gpu_name) {
  return estimated_calibration(gpu_name, gpu_of(gpu_name));
}

Calibration estimated_calibration(const std::string& gpu_name, const Gpu& gpu) {
  const Estimate e = shipped_estimate();
  Calibration c;
  c.header.gpu = gpu_name;
  c.header.description = "Estimated from the data sheet";
  c.gpu = gpu;
  c.gemm = e.gemm;
  c.attention = e.attention;
  c.memory_bound = e.memory_bound;
  c.collectives = collectives_on(e.collectives, gpu);
  c.p2p = messages_on(e.p2p, gpu);
  c.recurrence = e.recurrence;
  c.overlap = e.overlap;
  return c;
}

}  // namespace mllmsim::costs
