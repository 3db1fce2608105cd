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
    case CollectiveOp::all_to_all:
      return {"tp all-to-all", "tp all-to-all (exposed)"};
  }
  return {};
}

constexpr int kAmaxKernels = 3;  // largest value, scale, values

Gemm forward(const LayerSetting& s, const Linear& l, std::int64_t tokens) {
  return {tokens, l.outputs, l.inputs, GemmPass::forward, 1, s.format};
}

Gemm input_gradient(const LayerSetting& s, const Linear& l, std::int64_t tokens) {
  return {tokens, l.inputs, l.outputs, GemmPass::input_gradient, 1, s.format};
}

Gemm weight_gradient(const LayerSetting& s, const Linear& l, std::int64_t tokens) {
  return {l.inputs, l.outputs, tokens, GemmPass::weight_gradient, 1, s.format};
}

void weight_backward(KernelList& list, const LayerSetting& s, const Linear& l,
                     std::int64_t tokens) {
  if (s.trained) list.gemm(l.weight_gradient_name, weight_gradient(s, l, tokens));
  adapter_backward(list, l, tokens);
}

// By rows for one product, by columns for the weight gradient.
int copies(const LayerSetting& s) { return s.trained ? 2 : 1; }

void quantise_input(KernelList& list, const LayerSetting& s, std::int64_t values,
                    bool behind_norm = false) {
  list.quantise("quantise input", values, copies(s), behind_norm && s.software.fused_norms);
}

void quantise_gradient(KernelList& list, const LayerSetting& s, std::int64_t values) {
  list.quantise("quantise gradient", values, copies(s));
}

}  // namespace

void KernelList::add(std::string_view name, bool communication, Cost cost, Flops flops) {
  kernels_.push_back(
      {name, communication, to_time(cost.time), flops, cost.source, {}, launches_, 0, wait_});
  wait_ = false;
}

Cost KernelList::product(Gemm gemm) const {
  if (!is_quantised(gemm.format)) gemm.format = plain_;
  return costs_.gemm(gemm);
}

// Beside the one that Python calls for.
void KernelList::more_launches(int kernels) {
  kernels_.back().expert_launches += launches_ * kernels;
}

// Scales of blocks are laid out for the product by a kernel per operand (Transformer Engine's
// swizzle_scaling_factors), whose time is part of what was measured of such products.
void KernelList::gemm(std::string_view name, const Gemm& gemm) {
  add(name, false, product(gemm), gemm.flops());
  if (gemm.format == NumberFormat::mxfp8 || gemm.format == NumberFormat::nvfp4) more_launches(2);
}

void KernelList::grouped_gemm(std::string_view name, Gemm gemm, bool one_launch) {
  gemm.grouped = true;
  this->gemm(name, gemm);
  if (!one_launch) kernels_.back().expert_launches += static_cast<int>(gemm.batch);
}

void KernelList::attention(std::string_view name, const Attention& attention) {
  add(name, false, costs_.attention(attention), attention.flops());
}

void KernelList::chunked_scan(std::string_view name, const ChunkedScan& scan) {
  add(name, false, costs_.chunked_scan(scan), scan.products);
}

void KernelList::memory(std::string_view name, MemoryOp op, std::int64_t rows,
                        std::int64_t row_length, Traffic bytes_per_value) {
  if (bytes_per_value.cast && activation_bytes_ == kFp32) return;
  const Bytes bytes{bytes_per_value.of(rows * row_length, activation_bytes_)};
  add(name, false, costs_.memory_bound({op, bytes, rows, row_length}), {});
}

void KernelList::elementwise(std::string_view name, std::int64_t values, Traffic bytes_per_value) {
  if (bytes_per_value.cast && activation_bytes_ == kFp32) return;
  const MemoryBound kernel{MemoryOp::elementwise,
                           Bytes{bytes_per_value.of(values, activation_bytes_)}};
  add(name, false, costs_.memory_bound(kernel), {});
}

void KernelList::elementwise(std::string_view name, std::int64_t values,
                             std::span<const Traffic> bytes_per_value) {
  for (const Traffic& bytes : bytes_per_value) elementwise(name, values, bytes);
}

void KernelList::small_kernels(std::string_view name, int kernels, std::int64_t values,
                               Traffic bytes_per_value) {
  if (kernels == 0) return;
  elementwise(name, values, bytes_per_value);
  kernels_.back().time = to_time(to_seconds(kernels_.back().time) * kernels);
  kernels_.back().launches *= kernels;
}

// Listed as two, of which the first has all but one kernel's time and the second all launches: a
// row of kernels takes either its launches and the last kernel, or all kernels (host_time.cpp).
void KernelList::for_each_part(std::string_view name, std::int64_t parts,
                               std::span<const PartKernel> kernels) {
  Seconds all{}, last{};
  Source source = Source::measured;
  for (const PartKernel& k : kernels) {
    const Bytes bytes{k.bytes_per_value.of(k.values, activation_bytes_)};
    const Cost cost = costs_.memory_bound({MemoryOp::elementwise, bytes});
    last = cost.time;
    all += last;
    source = std::max(source, cost.source);
  }
  add(name, false, {all * static_cast<double>(parts) - last, source}, {});
  kernels_.back().launches = 0;
  add(name, false, {last, source}, {});
  kernels_.back().launches *= static_cast<int>(parts) * static_cast<int>(kernels.size());
}

void KernelList::activation(std::string_view name, std::int64_t values, Traffic bytes_per_value,
                            bool backward) {
  const MemoryBound kernel{backward ? MemoryOp::activation_backward : MemoryOp::activation,
                           Bytes{bytes_per_value.of(values, activation_bytes_)}};
  add(name, false, costs_.memory_bound(kernel), {});
}

void KernelList::quantise(std::string_view name, std::int64_t values, int copies, bool amax_known) {
  if (!is_quantised(format_)) return;
  const Bytes read{values * kHalf * (amax_pass_ && !amax_known ? 2 : 1)};
  const Bytes written = scaled(Bytes{values}, copies * bytes_of(format_));
  add(name, false, costs_.memory_bound({quantising(format_), read + written}), {});
  if (amax_pass_ && !amax_known) more_launches(kAmaxKernels - 1);
}

void KernelList::quantise_experts(std::string_view name, std::int64_t values, int copies,
                                  std::int64_t experts) {
  if (!is_quantised(format_)) return;
  const bool known = format_ == NumberFormat::fp8 && !amax_pass_;
  if (known || experts <= 1) return quantise(name, values, copies);
  const std::int64_t each = ceil_div(values, experts);
  const Bytes bytes = Bytes{each * kHalf} + scaled(Bytes{each}, copies * bytes_of(format_));
  Cost cost = costs_.memory_bound({quantising(format_), bytes});
  if (amax_pass_) cost.time += costs_.memory_bound({MemoryOp::elementwise, {each * kHalf}}).time;
  add(name, false, {cost.time * static_cast<double>(experts), cost.source}, {});
  kernels_.back().expert_launches = static_cast<int>(experts) * (amax_pass_ ? kAmaxKernels : 1);
}

void KernelList::collective(CollectiveOp op, Bytes bytes) {
  if (tp_group_.ranks == 1) return;
  add(names_of(op).whole, true, costs_.collective({op, bytes, tp_group_}), {});
}

void KernelList::cp_collective(const LayerSetting& s, CollectiveOp op, Bytes bytes) {
  if (s.cp() == 1) return;
  const std::string_view name = op == CollectiveOp::all_gather       ? "cp all-gather"
                                : op == CollectiveOp::reduce_scatter ? "cp reduce-scatter"
                                                                     : "cp all-to-all";
  add(name, true, costs_.collective({op, bytes, s.cp_group}), {});
}

void KernelList::add_exchange(std::string_view name, Cost cost) {
  add(name, true, cost, {});
  kernels_.back().beside_other_pass = kernels_.back().time;
}

void KernelList::exchange(std::string_view name, const Collective& collective) {
  if (collective.group.ranks > 1) add_exchange(name, costs_.collective(collective));
}

void KernelList::exchange(std::string_view name, const TokenExchange& exchange) {
  if (exchange.group.ranks > 1) add_exchange(name, costs_.token_exchange(exchange));
}

Seconds KernelList::computing(std::size_t from) const {
  Time sum{};
  for (std::size_t i = from; i < kernels_.size(); ++i)
    if (!kernels_[i].communication) sum += kernels_[i].time;
  return to_seconds(sum);
}

void KernelList::hide_exchanges(std::size_t from, Seconds compute, double slowdown) {
  std::vector<TimedKernel*> exchanges;
  for (std::size_t i = from; i < kernels_.size(); ++i)
    if (kernels_[i].beside_other_pass > Time{}) exchanges.push_back(&kernels_[i]);
  for (TimedKernel* k : exchanges) {
    const Seconds shown =
        to_seconds(k->time) - hidden_beside(slowdown, to_seconds(k->time),
                                            compute / static_cast<double>(exchanges.size()));
    k->time = k->beside_other_pass = to_time(shown);
  }
}

double slowdown_beside_exchange(const LayerSetting& s) {
  const bool hybrid = s.software.moe_token_dispatcher == TokenDispatcher::hybridep;
  return s.costs.slowdown_beside_exchange(hybrid ? s.software.moe_hybridep_num_sms : 0);
}

Seconds hidden_beside(double slowdown, Seconds communication, Seconds compute) {
  const Seconds slowed = std::min(communication * (1 - 1 / slowdown), compute * (slowdown - 1));
  return std::max(Seconds{}, std::min(communication, compute + slowed) - slowed);
}

void KernelList::ring(std::string_view name, const Attention& step, std::int64_t steps,
                      Cost message) {
  const Cost each = costs_.attention(step);
  message.time -= each.time;
  for (std::int64_t i = 0; i < steps; ++i) {
    add(name, false, each, step.flops());
    if (i + 1 < steps && message.time > Seconds{}) add("cp exchange (exposed)", true, message, {});
  }
}

void KernelList::attention_share(std::string_view name, const Attention& whole,
                                 std::int64_t parts) {
  Cost cost = costs_.attention(whole);
  cost.time = cost.time / static_cast<double>(parts);
  add(name, false, cost, whole.flops() * (1.0 / static_cast<double>(parts)));
}

void KernelList::gemm_beside(std::string_view name, const Gemm& gemm, CollectiveOp op,
                             Bytes bytes) {
  if (tp_group_.ranks == 1) return this->gemm(name, gemm);
  add_beside(name, product(gemm), gemm.flops(), op, costs_.collective({op, bytes, tp_group_}));
}

void KernelList::add_beside(std::string_view name, Cost compute, Flops flops, CollectiveOp op,
                            Cost communication, Seconds alone) {
  const double slowdown = costs_.gemm_slowdown_beside_collective();
  compute.time =
      std::min(compute.time + communication.time * (1 - 1 / slowdown), compute.time * slowdown);
  communication.time -= compute.time;
  compute.time += alone;
  add(name, false, compute, flops);
  if (communication.time > Seconds{}) add(names_of(op).exposed, true, communication, {});
}

void KernelList::gemm_in_pieces(std::string_view name, const Gemm& gemm, CollectiveOp op,
                                Bytes bytes) {
  if (tp_group_.ranks == 1) return this->gemm(name, gemm);
  const Cost communication = costs_.collective({op, bytes, tp_group_});
  const bool ring = op == CollectiveOp::all_gather;
  const int pieces = ring ? tp_group_.ranks : pieces_;
  Gemm piece = gemm;
  piece.m = ceil_div(gemm.m, pieces);
  const Cost one = product(piece);
  if (ring) {
    add_beside(name, {one.time * (pieces - 1.0), one.source}, gemm.flops(), op, communication,
               one.time);
    return;
  }
  const Seconds hidden = communication.time * (1.0 - 1.0 / pieces);
  add_beside(name, {one.time * static_cast<double>(pieces), one.source}, gemm.flops(), op,
             {hidden, communication.source});
  add(names_of(op).exposed, true, {communication.time - hidden, communication.source}, {});
}

void column_forward(KernelList& list, const LayerSetting& s, const Linear& l, std::int64_t tokens) {
  const Gemm gemm = forward(s, l, tokens);
  const Bytes x = s.operand(tokens * l.inputs);
  if (!s.norm_quantises()) quantise_input(list, s, s.rows(tokens) * l.inputs, true);
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
  const bool beside = s.software.overlap_tp_backward &&
                      (op != CollectiveOp::all_reduce || s.software.overlap_tp_all_reduce);
  if (beside) return list.gemm_beside(name, gemm, op, x);
  list.gemm(name, gemm);
  list.collective(op, x);
}

// With x gathered for the weight gradient that follows.
void input_gradient_of(KernelList& list, const LayerSetting& s, const Linear& l,
                       std::int64_t tokens) {
  const Gemm for_input = input_gradient(s, l, tokens);
  quantise_gradient(list, s, tokens * l.outputs);
  if ((s.trained || l.adapter_rank > 0) && s.sequence_parallel)
    gemm_and(list, s, l.input_gradient_name, for_input, CollectiveOp::all_gather,
             s.operand(tokens * l.inputs));
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
    gemm_and(list, s, l.weight_gradient_name, weight_gradient(s, l, tokens), reduce, x);
  else
    list.collective(reduce, x);
}

void gathered_backward(KernelList& list, const LayerSetting& s, const Linear& l,
                       std::int64_t tokens) {
  input_gradient_of(list, s, l, tokens);
  weight_backward(list, s, l, tokens);
}

void row_forward(KernelList& list, const LayerSetting& s, const Linear& l, std::int64_t tokens) {
  const Gemm gemm = forward(s, l, tokens);
  const Bytes y = s.activation(tokens * l.outputs);
  adapter_forward(list, l, tokens);
  quantise_input(list, s, tokens * l.inputs);
  if (s.overlaps_forward())
    return list.gemm_in_pieces(l.forward, gemm, CollectiveOp::reduce_scatter, y);
  list.gemm(l.forward, gemm);
  list.collective(s.sequence_parallel ? CollectiveOp::reduce_scatter : CollectiveOp::all_reduce, y);
}

void row_backward(KernelList& list, const LayerSetting& s, const Linear& l, std::int64_t tokens) {
  const Bytes y = s.operand(tokens * l.outputs);
  quantise_gradient(list, s, s.rows(tokens) * l.outputs);
  if (s.overlaps_forward()) {
    list.gemm_in_pieces(l.input_gradient_name, input_gradient(s, l, tokens),
                        CollectiveOp::all_gather, y);
    return weight_backward(list, s, l, tokens);
  }
  if (s.sequence_parallel) list.collective(CollectiveOp::all_gather, y);
  list.gemm(l.input_gradient_name, input_gradient(s, l, tokens));
  weight_backward(list, s, l, tokens);
}

void whole_forward(KernelList& list, const LayerSetting& s, const Linear& l, std::int64_t tokens) {
  quantise_input(list, s, tokens * l.inputs);
  list.gemm(l.forward, forward(s, l, tokens));
  adapter_forward(list, l, tokens);
}

void whole_backward(KernelList& list, const LayerSetting& s, const Linear& l, std::int64_t tokens) {
  quantise_gradient(list, s, tokens * l.outputs);
  list.gemm(l.input_gradient_name, input_gradient(s, l, tokens));
  weight_backward(list, s, l, tokens);
}

}  // namespace mllmsim::costs
