// Time of variable-length flash attention: a tiled closed form, corrected by a measured table.
//
//   tiles    = ceil(s / 128) query tiles per sequence and head; tile i sees kv(i) keys: all, in
//              blocks of 64, or the first 128 (i + 1) of them if causal, at most window + 128
//   total    = batch * heads * sum_i (kv(i) + k_overhead) * 4 * 128 * head_dim / (rate * peak)
//   longest  = (max_i kv(i) + k_overhead) * 4 * 128 * head_dim / (rate * peak / SMs)
//   memory   = bytes of q, k, v and output / memory bandwidth
//   busy     = p-norm of total and longest, then of that and memory
//   time     = launch + busy * exp(correction(log2 s, log2(batch * heads)))
//
// Where tiles are not a GPU's (`tile` of a kernel), its rows stand for 128 and half of them for 64.
// The correction is bilinear in a table and constant outside it, so the form extrapolates. Backward
// does 2.5 times the FLOPs in a kernel of its own, or is a ratio of the forward if not measured,
// which may depend on the length (linear in its logarithm, constant beyond the lengths given).
//
// An older FlashAttention than the measured one takes longer by a factor of the calibration; a
// newer one is taken to be as fast as what was measured. Kernels are slower where power limits the
// clock for long, as GEMMs are, on GPUs where that was measured.
//
// A pack of sequences of different lengths is one launch over all their tiles:
//   busy(pack) = sum_g (tokens_g / tokens) * busy(length_g, batch = tokens / length_g)
// exact if all are equal, and never less than its longest sequence takes alone.
//
// Latent attention has keys wider than values: its heads count as of the mean width, times what was
// measured over that.
//
// Cross-attention has its own number of keys, none of them masked; where it stands in the table
// follows from the square with as many pairs. It was not measured.
#pragma once

#include <optional>
#include <vector>

#include "cost_models/kernels/gpus.hpp"
#include "cost_models/kernels/provenance.hpp"

namespace mllmsim::costs {

// Rows: log2 of the length; columns: log2 of batch * heads.
struct AttentionTable {
  double first_length = 0, first_heads = 0;  // log2 of the first row and column; each next is +1
  int rows = 0, columns = 0;                 // 0: no correction
  std::vector<double> correction;            // row-major, added to log time

  double at(double length, double heads) const;  // log2 of both
};

struct AttentionKernel {
  std::int64_t head_dim = 0;
  bool causal = false, backward = false;
  Provenance provenance;
  Seconds launch{};
  double rate = 0, k_overhead = 0, norm = 2;
  std::optional<double> tile{};  // query rows, where they are not a GPU's 128
  AttentionTable table;
};

struct OlderAttention {
  int generation = 1;
  Factor time;  // over that of the measured generation, both passes
};

struct BackwardRatio {
  double length = 0;  // of a sequence
  double factor = 1;
};

struct AttentionModel {
  int generation = 2;                    // of FlashAttention that was measured
  std::vector<AttentionKernel> kernels;  // at least one forward
  Factor backward;                       // time over forward, where no backward kernel is
  std::vector<OlderAttention> older{};   // every generation before the measured one
  std::optional<Factor> sustained{};     // seconds under power limit over bursts, if measured
  std::vector<BackwardRatio> backward_by_length{};  // by rising length; empty: `backward` for all
  // Keys wider than values over heads of their mean width, forward and backward, if measured.
  std::optional<Factor> wide_keys{}, wide_keys_backward{};
};

// One length. batch need not be whole.
struct AttentionShape {
  double length = 0, batch = 1, heads = 1, kv_heads = 1, head_dim = 128;
  bool causal = false;
  double window = 0;  // 0: none
  double keys = 0;    // of cross-attention; 0: the sequence itself
};
Seconds attention_busy(const AttentionKernel& kernel, const Gpu& gpu, const AttentionShape& shape);

Cost attention_time(const AttentionModel& model, const Gpu& gpu, const Attention& attention);

}  // namespace mllmsim::costs
