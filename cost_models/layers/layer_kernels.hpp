// The vocabulary layers are written in: a list of timed kernels that grows in execution order, what
// a tp rank knows about its layer, and the linear layers that tensor parallelism splits.
//
// Communication that Megatron starts asynchronously beside a GEMM appears in the list only with
// what outlasts that GEMM, so that a list stays serial and its sum is the time of the pass. While
// both run, NCCL's channels occupy a share f of the SMs, f = 1 - 1 / slowdown of the calibration,
// so for a GEMM of g and communication of c seconds
//   GEMM                  = min(g + f c, g / (1 - f))
//   exposed communication = max(0, c - GEMM).
#pragma once

#include <span>

#include "cost_models/layers/layer_costs.hpp"

namespace mllmsim::costs {

constexpr std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

// One layer as seen by one GPU of a tp group.
struct LayerSetting {
  const KernelCosts& costs;
  const Software& software;
  GroupShape tp_group;
  bool sequence_parallel = false;
  bool trained = true;
  bool input_gradient = true;
  bool adapters = false;                     // beside its matrices, trained
  NumberFormat format = NumberFormat::bf16;  // of the linear layers' products
  GroupShape cp_group{};                     // one rank: sequences are whole
  CpCommType cp_comm_type = CpCommType::p2p;
  int cp_nic_sharers = 1;  // of a ring that leaves a node
  // Experts are on other ranks than the rest of the layer (Parallelism): ep and etp ranks.
  bool experts_apart = false;
  GroupShape expert_group{}, expert_tp_group{};
  // zero_stage 3: weights arrive in bf16 for every pass, and are quantised for it.
  bool quantises_weights = false;
  bool image_gradient = false;  // of cross-attention: its keys' tokens need one
  // Samples of the micro-batch that are turned to their positions one by one; 0: all at once.
  std::int64_t rotated_apart = 0;

  std::int64_t tp() const { return tp_group.ranks; }
  bool overlaps_forward() const { return sequence_parallel && software.overlap_tp_forward; }
  bool has_backward() const { return trained || adapters || input_gradient || image_gradient; }
  // Rows a rank holds of a tensor outside the tensor-parallel regions.
  std::int64_t rows(std::int64_t tokens) const {
    return sequence_parallel ? ceil_div(tokens, tp()) : tokens;
  }
  std::int64_t cp() const { return cp_group.ranks; }
  // What a cp rank has of a sequence: two pieces of 2 cp, padded.
  std::int64_t local_length(std::int64_t length) const {
    return cp() == 1 ? length : 2 * ceil_div(length, 2 * cp());
  }
  std::int64_t local_tokens(const TokenBatch& batch) const {
    if (cp() == 1) return batch.tokens();
    std::int64_t n = 0;
    for (const SequenceGroup& g : batch.groups) n += g.count * local_length(g.length);
    return n;
  }
  // A vocabulary's rows on one rank, padded.
  std::int64_t vocabulary_shard(std::int64_t vocab_size) const {
    const std::int64_t multiple = software.make_vocab_size_divisible_by;
    return ceil_div(vocab_size, multiple * tp()) * multiple;
  }
  Bytes activation(std::int64_t values) const {
    return {values * software.precision.activation_bytes};
  }

  bool quantises() const { return is_quantised(format); }
  // Transformer Engine's norms (pytorch/csrc/extensions/normalization.cpp) write their output
  // quantised if its scale is known beforehand, and otherwise find its largest value on the way.
  bool norm_quantises() const {
    return software.fused_norms && format == NumberFormat::fp8 &&
           !software.precision.fp8_current_scaling;
  }
  // Inputs and gradients of products travel as they are multiplied.
  Bytes operand(std::int64_t values) const {
    return quantises() ? scaled(Bytes{values}, bytes_of(format)) : activation(values);
  }
};

// The kernel that brings values into a format.
constexpr MemoryOp quantising(NumberFormat format) {
  return format == NumberFormat::mxfp8 ? MemoryOp::quantise_mxfp8 : MemoryOp::elementwise;
}

// What communication does not show beside a GEMM of `compute`, less what it slows that (above).
Seconds hidden_beside(double slowdown, Seconds communication, Seconds compute);
// How much longer kernels take beside an exchange of tokens: HybridEP's blocks hold the SMs it is
// given.
double slowdown_beside_exchange(const LayerSetting& setting);

class KernelList {
 public:
  explicit KernelList(const LayerSetting& setting)
      : costs_(setting.costs),
        tp_group_(setting.tp_group),
        pieces_(setting.software.tp_overlap_pieces),
        format_(setting.format),
        plain_(setting.software.precision.plain_format()),
        activation_bytes_(setting.software.precision.activation_bytes),
        amax_pass_(
            needs_amax_pass(setting.format, setting.software.precision.fp8_current_scaling)) {
    kernels_.reserve(8);
  }

  // What follows is replayed as a graph, or not any more.
  void in_graph(bool graph) { launches_ = graph ? 0 : 1; }

  void gemm(std::string_view name, const Gemm& gemm);
  // Of experts: one launch for all, or one for each from a loop in C++.
  void grouped_gemm(std::string_view name, Gemm gemm, bool one_launch);
  void attention(std::string_view name, const Attention& attention);
  void chunked_scan(std::string_view name, const ChunkedScan& scan);
  void memory(std::string_view name, MemoryOp op, std::int64_t rows, std::int64_t row_length,
              Traffic bytes_per_value);
  // bytes_per_value: all that is read and written for each of `values`.
  void elementwise(std::string_view name, std::int64_t values, Traffic bytes_per_value);
  // One kernel for each entry: a chain of eager operations on the same tensor.
  void elementwise(std::string_view name, std::int64_t values,
                   std::span<const Traffic> bytes_per_value);
  // So many kernels, each of which reads and writes as much.
  void small_kernels(std::string_view name, int kernels, std::int64_t values,
                     Traffic bytes_per_value);
  // The same kernels for each of so many equal parts of a tensor, one part after another.
  struct PartKernel {
    std::int64_t values;  // of one part
    Traffic bytes_per_value;
  };
  void for_each_part(std::string_view name, std::int64_t parts,
                     std::span<const PartKernel> kernels);
  // Of an activation function: transcendental, so on some machines slower than its bytes.
  void activation(std::string_view name, std::int64_t values, Traffic bytes_per_value,
                  bool backward);
  // Into copies in the setting's format; nothing if products take bf16. Read once, or twice where
  // the largest value is looked for first.
  void quantise(std::string_view name, std::int64_t values, int copies, bool amax_known = false);
  // The same of so many experts' rows, for each its own kernels (Transformer Engine's
  // split_quantize, which has one kernel for all only where scales are known: delayed scaling).
  void quantise_experts(std::string_view name, std::int64_t values, int copies,
                        std::int64_t experts);
  // The CPU waits for what the GPU has found out so far before it launches what comes next.
  void wait_for_counts() { wait_ = true; }
  // Over the tp group; nothing if that is one rank.
  void collective(CollectiveOp op, Bytes bytes);
  // Over the cp group.
  void cp_collective(const LayerSetting& s, CollectiveOp op, Bytes bytes);
  // Of tokens between ranks with different experts, or experts' rows between those that cut them.
  void exchange(std::string_view name, const Collective& collective);
  void exchange(std::string_view name, const TokenExchange& exchange);
  // Exchanges among the kernels from here on run beside kernels that compute for so long, in equal
  // parts: only what outlasts those shows, and how much it slows them.
  void hide_exchanges(std::size_t from, Seconds compute, double slowdown);
  std::size_t size() const { return kernels_.size(); }
  Seconds computing(std::size_t from) const;  // of all kernels from there on
  // `steps` kernels one after another. Beside each but the last, a message to the next cp rank
  // travels that the next kernel waits for; only what outlasts the kernel shows.
  void ring(std::string_view name, const Attention& step, std::int64_t steps, Cost message);
  // One of `parts` equal shares of a kernel.
  void attention_share(std::string_view name, const Attention& whole, std::int64_t parts);
  // A GEMM with a collective running beside it.
  void gemm_beside(std::string_view name, const Gemm& gemm, CollectiveOp op, Bytes bytes);
  // The same for communication that the GEMM itself depends on: both are cut into pieces, smaller
  // and so less efficient GEMMs. What is gathered goes round a ring, a piece per rank, while pieces
  // that are there are multiplied, a rank's own first: beside all but the last. What is reduced
  // goes after each piece, so the last has nothing to hide behind. (Transformer Engine's
  // ring_exchange and pipeline.)
  void gemm_in_pieces(std::string_view name, const Gemm& gemm, CollectiveOp op, Bytes bytes);

  std::vector<TimedKernel> take() { return std::move(kernels_); }

 private:
  Cost product(Gemm gemm) const;
  void more_launches(int kernels);
  void add(std::string_view name, bool communication, Cost cost, Flops flops);
  void add_exchange(std::string_view name, Cost cost);
  // `alone`: of the same kernel, with nothing beside it.
  void add_beside(std::string_view name, Cost compute, Flops flops, CollectiveOp op,
                  Cost communication, Seconds alone = {});

  const KernelCosts& costs_;
  GroupShape tp_group_;
  int pieces_;
  NumberFormat format_;
  NumberFormat plain_;  // of products that are not quantised
  std::int64_t activation_bytes_;
  bool amax_pass_;
  int launches_ = 1;
  bool wait_ = false;
  std::vector<TimedKernel> kernels_;
};

// y = x W, of which one rank holds `inputs` x `outputs`.
//
// In a quantised format x is quantised before the forward, unless the norm before it did that, and
// the gradient of y before the backward: each by rows for one product and by columns for the weight
// gradient. Weights are quantised once per step (LayerCosts::quantise_weights). What is gathered
// for a product travels quantised; what is reduced is bf16.
struct Linear {
  std::string_view forward, input_gradient_name, weight_gradient_name;
  std::int64_t inputs = 0, outputs = 0;
  std::int64_t adapter_rank = 0;  // of a trained adapter beside it; 0: none
  bool dora = false;
};

// y += (x A) B with A inputs x rank, B rank x outputs. Where x is split over ranks, so is A, and
// the sum over ranks is that of y. DoRA scales y by a learned magnitude over the norm of each
// column of W + A B, through which no gradient flows (Liu et al. 2024, equation 11).
void adapter_forward(KernelList& list, const Linear& linear, std::int64_t tokens);
void adapter_backward(KernelList& list, const Linear& linear, std::int64_t tokens);

// The gradient of x is always made: even in the first trained layer a norm with weights, or another
// linear, comes before. The gradient of W is made if the layer is trained.
//
// Columns split: every rank needs all of x (gathered first with sequence parallel) and makes its
// share of y. Backward, each rank has a partial sum of the gradient of x. Megatron gathers x once
// more for the weight gradient behind the input-gradient GEMM, and reduces the gradient of x behind
// the weight-gradient GEMM.
void column_forward(KernelList& list, const LayerSetting& s, const Linear& linear,
                    std::int64_t tokens);
void column_backward(KernelList& list, const LayerSetting& s, const Linear& linear,
                     std::int64_t tokens);
// As column_backward, where every rank holds all columns, so the gradient of x is complete.
void gathered_backward(KernelList& list, const LayerSetting& s, const Linear& linear,
                       std::int64_t tokens);

// Rows split: every rank has a share of x and makes a partial sum of y, which is reduced (scattered
// with sequence parallel). Backward, sequence parallel gathers the gradient of y, with nothing for
// that to hide behind.
void row_forward(KernelList& list, const LayerSetting& s, const Linear& linear,
                 std::int64_t tokens);
void row_backward(KernelList& list, const LayerSetting& s, const Linear& linear,
                  std::int64_t tokens);

// Replicated on every rank.
void whole_forward(KernelList& list, const LayerSetting& s, const Linear& linear,
                   std::int64_t tokens);
void whole_backward(KernelList& list, const LayerSetting& s, const Linear& linear,
                    std::int64_t tokens);

}  // namespace mllmsim::costs
