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

namespace mllmsim::fit {

// The cluster where collectives across nodes were measured; times transfer to others through it.
struct MeasuredNetwork {
  int gpus_per_node = 8;
  int nics_per_node = 8;
  BytesPerSecond nic_bandwidth{50e9};
};

costs::Calibration fit(const RawData& raw, costs::Calibration base,
                       const MeasuredNetwork& network = {});

void fit_gemm(const std::vector<GemmMeasurement>& raw, const costs::Gpu& gpu,
              costs::GemmModel& model);
void fit_attention(const std::vector<AttentionMeasurement>& raw, const costs::Gpu& gpu,
                   costs::AttentionModel& model);
void fit_memory_bound(const std::vector<Measurement<costs::MemoryBound>>& raw,
                      const costs::Gpu& gpu, costs::MemoryBoundModel& model);
void fit_collectives(const std::vector<Measurement<costs::Collective>>& raw, const costs::Gpu& gpu,
                     const MeasuredNetwork& network, costs::CollectiveModel& model);
inline constexpr std::ptrdiff_t kFewestCollectives = 4;  // of an operation and number of ranks
// How grouped products of experts compare with as many alike (model.grouped).
void fit_experts(const std::vector<ExpertsMeasurement>& raw,
                 const std::vector<GemmMeasurement>& gemms, const costs::Gpu& gpu,
                 const costs::MemoryBoundModel& memory, costs::GemmModel& model);
void fit_exchange(const std::vector<ExchangeMeasurement>& raw,
                  std::vector<costs::ExchangeModel>& model);
void fit_p2p(const std::vector<Measurement<costs::PointToPoint>>& raw, const costs::Gpu& gpu,
             costs::P2pModel& model);

// A data sheet for a machine that has none (a CPU, a GPU we do not know): the best rates that were
// measured, and one SM, so that nothing is quantised in waves.
costs::Gpu measured_sheet(const RawData& raw);

}  // namespace mllmsim::fit
