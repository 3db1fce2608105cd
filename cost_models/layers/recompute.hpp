// What of a block runs again before its backward reads what that leaves: selective recompute by
// module, as Megatron-Core's --recompute-modules (megatron/core/transformer/transformer_config.py
// and the modules that look there).
//
//   core_attn        keeps q, k, v and the output (which the next matrix reads); drops the scores,
//                    or flash attention's log-sum-exp
//   layernorm        drops the norm's output. Only norms that are modules of their own: before
//                    latents and before experts; others are part of Transformer Engine's linear
//                    layer, which keeps both sides
//   mla_up_proj      keeps the latents and the shared rotary key; drops q, k and v
//   mlp              keeps the norm's input and drops all that follows; blocks without experts
//   moe              keeps the norm's output and drops all that follows, dispatch included
//   moe_act          drops the input of the experts' second matrix
//   shared_experts   drops all within them
//
// A module within another that runs again (moe_act within moe) runs once more by itself.
#pragma once

#include "cost_models/layers/block_kernels.hpp"

namespace mllmsim::costs {

struct Rerun {
  bool attention = false, input_norm = false, up_projections = false;
  bool mlp_norm = false, mlp = false;
  bool experts = false, expert_activation = false, shared_experts = false;
};
// Nothing but with selective recompute.
Rerun rerun_of(const Block& block, Recompute recompute);

// How many of the kernels after attention full recompute runs again: all, or up to the last whose
// result or input something after it keeps (recompute_early_stop).
std::size_t run_again(const Block& block, const std::vector<TimedKernel>& after_attention);

// What selective recompute runs again, attention aside.
std::vector<TimedKernel> rerun_kernels(const Block& block, std::int64_t tokens);

}  // namespace mllmsim::costs
