// A calibration of a GPU that nobody measured: its data sheet times efficiencies known from others.
//
// The efficiencies are data, DATA/cost_models/estimate.json: parts of a calibration, each with its
// reasoning, except that what depends on NVLink is relative to the sheet,
//   collective in a node  = latency(ranks) + bus bytes / (nvlink_efficiency * NVLink)
//   message in a node     = latency + bytes / (nvlink_efficiency * NVLink).
// Every part of the result is an estimate.
#pragma once

#include "cost_models/calibration/calibration.hpp"

namespace mllmsim::costs {

struct RingEstimate {
  int ranks = 0;
  Seconds latency{};
};

struct CollectiveEstimate {
  Provenance node_provenance;
  double nvlink_efficiency = 0;
  std::vector<RingEstimate> rings;         // by rising ranks, for every op
  std::vector<NetworkCollective> network;  // one of each op
};

struct P2pEstimate {
  Provenance node_provenance, network_provenance;
  Seconds node_latency{};
  double nvlink_efficiency = 0;
  Seconds network_latency{};
  BytesPerSecond message_bandwidth{};
  double nic_efficiency = 0;
};

struct Estimate {
  GemmModel gemm;
  AttentionModel attention;
  MemoryBoundModel memory_bound;
  CollectiveEstimate collectives;
  P2pEstimate p2p;
  RecurrenceModel recurrence;
  Factor overlap;
};

Estimate read_estimate(const std::filesystem::path& file);
Estimate shipped_estimate();

// From the shipped estimate and the GPU's data sheet, or another.
Calibration estimated_calibration(const std::string& gpu_name);
Calibration estimated_calibration(const std::string& gpu_name, const Gpu& gpu);

}  // namespace mllmsim::costs
