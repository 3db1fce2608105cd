// What a GPU is asked to do, by shape.
// Costs of these come from a KernelCosts; layers are lists of these.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/base/units.hpp"
#include "sim/world/batch.hpp"
#include "sim/world/precision.hpp"

namespace mllmsim::costs {

// C[m,n] = A[m,k] B[k,n] with fp32 accumulation, `batch` of them in one launch. A and B are in
// `format`, C is bf16.
// A linear layer y = x W of T tokens, i inputs, o outputs:
//   forward           m=T  n=o  k=i
//   input gradient    m=T  n=i  k=o
//   weight gradient   m=i  n=o  k=T   (adds into an fp32 main gradient)
enum class GemmPass : std::uint8_t { forward, input_gradient, weight_gradient };
struct Gemm {
  std::int64_t m = 0, n = 0, k = 0;
  GemmPass pass = GemmPass::forward;
  std::int64_t batch = 1;
  NumberFormat format = NumberFormat::bf16;
  bool grouped = false;  // the batch is experts, each with rows of its own

  Flops flops() const {
    return {2.0 * static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k) *
            static_cast<double>(batch)};
  }
  auto operator<=>(const Gemm&) const = default;
};

// Variable-length flash attention: one launch over all sequences of a batch, each attending within
// itself. Heads are those of one tp rank.
struct Attention {
  std::vector<SequenceGroup> sequences;
  std::int64_t heads = 0, kv_heads = 0, head_dim = 0;
  bool causal = false;
  bool backward = false;
  int generation = 0;  // of FlashAttention: 1, 2, 3, or 0 for what was measured
  // Keys a query of causal attention sees at most, itself and those before it; 0: all.
  std::int64_t window = 0;
  bool cross = false;      // keys are the sequences' cross_keys
  bool wide_keys = false;  // than values: head_dim is their mean

  // Of the whole square; of a window w < s twice the (w s - w^2 / 2) it has, as of the square.
  double pairs(double length) const {
    const auto w = static_cast<double>(window);
    return window == 0 || w >= length ? length * length : w * (2 * length - w);
  }

  // Matrix FLOPs of the two forward GEMMs over the full square (2.5 times as many backward). Causal
  // kernels skip half of them; model FLOPs by convention do not.
  Flops flops() const {
    double f = 0;
    for (const SequenceGroup& s : sequences) {
      const auto length = static_cast<double>(s.length);
      const double each = cross ? length * static_cast<double>(s.cross_keys) : pairs(length);
      f += 4.0 * static_cast<double>(s.count) * each * static_cast<double>(heads) *
           static_cast<double>(head_dim);
    }
    return {backward ? 2.5 * f : f};
  }
  auto operator<=>(const Attention&) const = default;
};

// A recurrence over sequences, in chunks: kernels over all chunks at once, and some that pass a
// state from chunk to chunk, each in as many steps as the longest sequence has chunks.
struct ChunkedScan {
  Flops products{};        // of all kernels
  Flops stepwise{};        // of these, of the kernels that go from chunk to chunk
  Bytes bytes{};           // read and written by all
  std::int64_t steps = 0;  // of all the kernels that go from chunk to chunk
  bool backward = false;
  bool mamba = false;

  auto operator<=>(const ChunkedScan&) const = default;
};

// Anything limited by memory bandwidth. bytes: all that is read and written. rows and row_length
// matter to norms and softmax, whose speed depends on the row.
enum class MemoryOp : std::uint8_t {
  elementwise,  // activations, residuals, dropout, rotary, bias, copies
  norm,
  norm_backward,
  softmax,
  embedding,  // gather or scatter-add of rows
  cross_entropy,
  optimizer,
  activation,              // GELU, SiLU: bound by memory on a GPU, by exponentials on a CPU;
  activation_backward,     // where they were not measured they are elementwise
  cross_entropy_backward,  // of PyTorch's log-softmax; where it was not measured, cross_entropy
  quantise_mxfp8,          // bound by arithmetic; where it was not measured, elementwise
};
struct MemoryBound {
  MemoryOp op = MemoryOp::elementwise;
  Bytes bytes{};
  std::int64_t rows = 0, row_length = 0;

  auto operator<=>(const MemoryBound&) const = default;
};

// Where the members of a communication group sit. Groups are regular:
//   ranks = nodes * ranks_per_node.
// A node is here what NVLink joins: ClusterSpec's NVLink domain, which may be several nodes.
// sibling_groups: groups of the same kind that communicate at the same time through the NICs of one
// node, this one included (tp = 8 gives 8 dp rings per node). It matters only across nodes.
struct GroupShape {
  int ranks = 1;
  int nodes = 1;
  int sibling_groups = 1;
  bool crosses_leaves = false;

  int ranks_per_node() const { return ranks / nodes; }
  auto operator<=>(const GroupShape&) const = default;
};

enum class CollectiveOp : std::uint8_t { all_gather, reduce_scatter, all_reduce, all_to_all };
struct Collective {
  CollectiveOp op = CollectiveOp::all_reduce;
  // Of the whole buffer: the gathered result, the input to scatter, the reduced vector, what one
  // rank has to give to all.
  Bytes bytes{};
  GroupShape group;

  auto operator<=>(const Collective&) const = default;
};

// Tokens to the ranks that have their experts (dispatch), or the experts' results back to where the
// tokens are, and summed there (combine), each token once per rank whatever it has there, and once
// per node over the network.
struct TokenExchange {
  bool combine = false;
  bool hybrid = true;          // HybridEP; otherwise DeepEP
  std::int64_t tokens = 0;     // of one rank
  std::int64_t bytes = 0;      // of one token
  double ranks_per_token = 1;  // that it goes to, its own included
  double nodes_per_token = 0;  // other nodes
  GroupShape group;
  int sms = 0;  // that HybridEP is given

  auto operator<=>(const TokenExchange&) const = default;
};

// A message between two GPUs. same_node: in one NVLink domain. nic_sharers: GPUs of the node that
// send through the same NIC at once.
struct PointToPoint {
  Bytes bytes{};
  bool same_node = true;
  int nic_sharers = 1;

  auto operator<=>(const PointToPoint&) const = default;
};

}  // namespace mllmsim::costs
