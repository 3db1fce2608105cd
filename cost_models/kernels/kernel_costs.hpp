// The seam between what is asked of a GPU (kernel.hpp) and how long it takes. Implementations
// answer from calibrations; everything above (layers, chunks, schedules) only sees this interface.
#pragma once

#include "cost_models/kernels/kernel.hpp"

namespace mllmsim::costs {

// What a time rests on, best first.
enum class Source : std::uint8_t { measured, interpolated, transferred, estimate };
inline constexpr std::size_t kSources = 4;

struct Cost {
  Seconds time{};
  Source source = Source::estimate;
};

// Times of some kinds of kernel, multiplied.
struct CostFactors {
  double gemm = 1, attention = 1, memory_bound = 1, optimizer = 1;
  double collectives_in_node = 1, collectives_across_nodes = 1, point_to_point = 1;

  bool operator==(const CostFactors&) const = default;
};

class KernelCosts {
 public:
  virtual ~KernelCosts() = default;
  // Times include launch overhead as seen by a GPU whose CPU keeps ahead.
  virtual Cost gemm(const Gemm&) const = 0;
  virtual Cost attention(const Attention&) const = 0;
  virtual Cost memory_bound(const MemoryBound&) const = 0;
  virtual Cost collective(const Collective&) const = 0;
  virtual Cost point_to_point(const PointToPoint&) const = 0;
  // At the peak or the memory's pace, unless something better is known.
  virtual Cost chunked_scan(const ChunkedScan& scan) const;
  // As an all-to-all of the bytes that leave a rank, unless something better is known.
  virtual Cost token_exchange(const TokenExchange& exchange) const;

  // Time of a GEMM while a collective runs beside it, over its time alone: NCCL occupies some SMs.
  virtual double gemm_slowdown_beside_collective() const = 0;
  // The same beside an exchange of tokens that holds so many SMs; 0: as NCCL.
  virtual double slowdown_beside_exchange(int sms) const;

  // Dense products of the data sheet, for MFU; 0: the GPU has none in this format.
  virtual FlopsPerSecond peak(NumberFormat format) const = 0;
};

}  // namespace mllmsim::costs
