// From raw measurements to a calibration.
//
// Each part with measurements is fitted (log time, robust least squares; models in gemm.hpp,
// attention.hpp, ...); each part without keeps what `base` says of it. Provenance reports errors
//   - on the one point in five, chosen by a hash of its shape, that is held out;
//   - for curves through message sizes: at each size with that size left out;
//   - for what has few points (networks, messages across nodes): of the fit itself.
// Deterministic; seconds for 10^5 points.
#pragma once

#include "cost_models/fit/raw_data.hpp"

namespace mllmsim {

// The cluster where collectives across nodes were measured; times transfer to others through it.
struct MeasuredNetwork {
  int gpus_per_node = 8;
  int nics_per_node = 8;
  BytesPerSecond nic_bandwidth{50e9};
};

Calibration fit(const RawData& raw, Calibration base, const MeasuredNetwork& network = {});

void fit_gemm(const std::vector<GemmMeasurement>& raw, const Gpu& gpu, GemmModel& model);
void fit_attention(const std::vector<AttentionMeasurement>& raw, const Gpu& gpu,
                   AttentionModel& model);
void fit_memory_bound(const std::vector<Measurement<MemoryBound>>& raw, const Gpu& gpu,
                      MemoryBoundModel& model);
void fit_collectives(const std::vector<Measurement<Collective>>& raw, const Gpu& gpu,
                     const MeasuredNetwork& network, CollectiveModel& model);
void fit_p2p(const std::vector<Measurement<PointToPoint>>& raw, const Gpu& gpu, P2pModel& model);

// A data sheet for a machine that has none (a CPU, a GPU we do not know): the best rates that were
// measured, and one SM, so that nothing is quantised in waves.
Gpu measured_sheet(const RawData& raw);

}  // namespace mllmsim
