#include "cost_models/layers/layer_kernels.hpp"

#include <algorithm>

namespace mllmsim::costs {
namespace {

struct CollectiveNames {
  std::string_view whole, exposed;
};

CollectiveNames names_of(CollectiveOp op) {
  switch (op) {
    case CollectiveOp::all_gather:
      return {"tp all-gather", "tp all-gather (exposed)"};
    case CollectiveOp::reduce_scatter:
      return {"tp reduce-scatter", "tp reduce-scatter (exposed)"};
    case CollectiveOp::all_reduce:
      return {"tp all-reduce", "tp all-reduce (exposed)"};
  }
  return {};
}

Gemm input_gradient(const Linear& l, std::int64_t tokens) {
  return {tokens, l.inputs, l.outputs, GemmPass::input_gradient};
}

Gemm weight_gradient(const Linear& l, std::int64_t tokens) {
  return {l.inputs, l.outputs, tokens, GemmPass::weight_gradient};
}

void weight_backward(KernelList& list, const LayerSetting& s, const Linear& l,
                     std::int64_t tokens) {
  if (s.trained) list.gemm(l.weight_gradient_name, weight_gradient(l, tokens));
  adapter_backward(list, l, tokens);
}

}  // namespace

void KernelList::add(std::string_view name, bool communication, Cost cost, Flops flops) {
  kernels_.push_back({name, communication, to_time(cost.time), flops, cost.source});
}

void KernelList::gemm(std::string_view name, const Gemm& gemm) {
  add(name, false, costs_.gemm(gemm), gemm.flops());
}

void KernelList::attention(std::string_view name, const Attention& attention) {
  add(name, false, costs_.attention(attention), attention.flops());
}

void KernelList::memory(std::string_view name, MemoryOp op, std::int64_t rows,
                        std::int64_t row_length, std::int64_t bytes_per_value) {
  const Bytes bytes{rows * row_length * bytes_per_value};
  add(name, false, costs_.memory_bound({op, bytes, rows, row_length}), {});
}

void KernelList::elementwise(std::string_view name, std::int64_t values,
                             std::int64_t bytes_per_value) {
  const MemoryBound kernel{MemoryOp::elementwise, Bytes{values * bytes_per_value}};
  add(name, false, costs_.memory_bound(kernel), {});
}

void KernelList::elementwise(std::string_view name, std::int64_t values,
                             std::span<const std::int64_t> bytes_per_value) {
  for (std::int64_t bytes : bytes_per_value) elementwise(name, values, bytes);
}

void KernelList::collective(CollectiveOp op, Bytes bytes) {
  if (tp_group_.ranks == 1) return;
  add(names_of(op).whole, true, costs_.collective({op, bytes, tp_group_}), {});
}

void KernelList::gemm_beside(std::string_view name, const Gemm& gemm, CollectiveOp op,
                             Bytes bytes) {
  if (tp_group_.ranks == 1) return this->gemm(name, gemm);
  add_beside(name, costs_.gemm(gemm), gemm.flops(), op, costs_.collective({op, bytes, tp_group_}));
}

void KernelList::add_beside(std::string_view name, Cost compute, Flops flops, CollectiveOp op,
                            Cost communication) {
  const double slowdown = costs_.gemm_slowdown_beside_collective();
  compute.time =
      std::min(compute.time + communication.time * (1 - 1 / slowdown), compute.time * slowdown);
  communication.time -= compute.time;
  add(name, false, compute, flops);
  if (communication.time > Seconds{}) add(names_of(op).exposed, true, communication, {});
}

void KernelList::gemm_in_pieces(std::string_view name, const Gemm& gemm, CollectiveOp op,
                                Bytes bytes) {
  if (tp_group_.ranks == 1) return this->gemm(name, gemm);
  Gemm piece = gemm;
  piece.m = ceil_div(gemm.m, pieces_);
  const Cost one = costs_.gemm(piece);
  const Cost communication = costs_.collective({op, bytes, tp_group_});
  const Seconds hidden = communication.time * (1.0 - 1.0 / pieces_);
  add_beside(name, {one.time * static_cast<double>(pieces_), one.source}, gemm.flops(), op,
             {hidden, communication.source});
  add(names_of(op).exposed, true, {communication.time - hidden, communication.source}, {});
}

void column_forward(KernelList& list, const LayerSetting& s, const Linear& l, std::int64_t tokens) {
  const Gemm gemm{tokens, l.outputs, l.inputs};
  const Bytes x = s.activation(tokens * l.inputs);
  if (s.overlaps_forward()) {
    list.gemm_in_pieces(l.forward, gemm, CollectiveOp::all_gather, x);
  } else {
    if (s.sequence_parallel) list.collective(CollectiveOp::all_gather, x);
    list.gemm(l.forward, gemm);
  }
  adapter_forward(list, l, tokens);
}

namespace {

void gemm_and(KernelList& list, const LayerSetting& s, std::string_view name, const Gemm& gemm,
              CollectiveOp op, Bytes x) {
  if (s.software.overlap_tp_backward) return list.gemm_beside(name, gemm, op, x);
  list.gemm(name, gemm);
  list.collective(op, x);
}

// With x gathered for the weight gradient that follows.
void input_gradient_of(KernelList& list, const LayerSetting& s, const Linear& l,
                       std::int64_t tokens) {
  const Gemm for_input = input_gradient(l, tokens);
  if ((s.trained || l.adapter_rank > 0) && s.sequence_parallel)
    gemm_and(list, s, l.input_gradient_name, for_input, CollectiveOp::all_gather,
             s.activation(tokens * l.inputs));
  else
    list.gemm(l.input_gradient_name, for_input);
}

}  // namespace

void column_backward(KernelList& list, const LayerSetting& s, const Linear& l,
                     std::int64_t tokens) {
  input_gradient_of(list, s, l, tokens);
  adapter_backward(list, l, tokens);
  const Bytes x = s.activation(tokens * l.inputs);
  const CollectiveOp reduce =
      s.sequence_parallel ? CollectiveOp::reduce_scatter : CollectiveOp::all_reduce;
  if (s.trained)
    gemm_and(list, s, l.weight_gradient_name, weight_gradient(l, tokens), reduce, x);
  else
    list.collective(reduce, x);
}

void gathered_backward(KernelList& list, const LayerSetting& s, const Linear& l,
                       std::int64_t tokens) {
  input_gradient_of(list, s, l, tokens);
  weight_backward(list, s, l, tokens);
}

void row_forward(KernelList& list, const LayerSetting& s, const Linear& l, std::int64_t tokens) {
  const Gemm gemm{tokens, l.outputs, l.inputs};
  const Bytes y = s.activation(tokens * l.outputs);
  adapter_forward(list, l, tokens);
  if (s.overlaps_forward())
    return list.gemm_in_pieces(l.forward, gemm, CollectiveOp::reduce_scatter, y);
  list.gemm(l.forward, gemm);
  list.collective(s.sequence_parallel ? CollectiveOp::reduce_scatter : CollectiveOp::all_reduce, y);
}

void row_backward(KernelList& list, const LayerSetting& s, const Linear& l, std::int64_t tokens) {
  const Bytes y = s.activation(tokens * l.outputs);
  if (s.overlaps_forward()) {
    list.gemm_in_pieces(l.input_gradient_name, input_gradient(l, tokens), CollectiveOp::all_gather,
                        y);
    return weight_backward(list, s, l, tokens);
  }
  if (s.sequence_parallel) list.collective(CollectiveOp::all_gather, y);
  whole_backward(list, s, l, tokens);
}

void whole_forward(KernelList& list, const Linear& l, std::int64_t tokens) {
  list.gemm(l.forward, {tokens, l.outputs, l.inputs});
  adapter_forward(list, l, tokens);
}

void whole_backward(KernelList& list, const LayerSetting& s, const Linear& l, std::int64_t tokens) {
  list.gemm(l.input_gradient_name, input_gradient(l, tokens));
  weight_backward(list, s, l, tokens);
}

}  // namespace mllmsim::costs
