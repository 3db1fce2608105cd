// Norms, activations, residual branches and rotary positions, as bytes per value moved by each
// kernel that a framework launches for them.
//
// fused_kernels: one pass each (apex, Transformer Engine, Megatron's jitted functions). Otherwise
// PyTorch eager as Megatron without fusions and Hugging Face models run it: every operator is a
// kernel that reads its inputs and writes its output, and an RMSNorm goes through fp32 copies.
// A sum such as kBf16 + kBf16 + kMask is one kernel: bf16 read, bf16 written, a mask written.
#pragma once

#include "cost_models/layers/layer_kernels.hpp"

namespace mllmsim::costs {

void norm_forward(KernelList& list, const LayerSetting& s, Norm norm, std::int64_t rows,
                  std::int64_t width);
void norm_backward(KernelList& list, const LayerSetting& s, Norm norm, std::int64_t rows,
                   std::int64_t width);

// From a branch's last GEMM to the residual stream:
// bias, dropout, layer scale, drop path, addition.
void residual_forward(KernelList& list, const LayerSetting& s, const Transformer& shape,
                      std::int64_t rows);
void residual_backward(KernelList& list, const LayerSetting& s, const Transformer& shape,
                       std::int64_t rows);
// Where a branch left the stream two gradients meet and are added.
void fork_backward(KernelList& list, const Transformer& shape, std::int64_t rows);

// Bias and GELU, or SwiGLU, on `values` outputs of the activation.
void activation_forward(KernelList& list, const LayerSetting& s, bool gated, bool bias,
                        std::int64_t values);
void activation_backward(KernelList& list, const LayerSetting& s, bool gated, bool bias,
                         std::int64_t values);

// What positions turn: of each token so many values of q and of k, in heads of `head_dim`.
struct Rotary {
  std::int64_t tokens, query, key, head_dim;
  bool interleaved = false;  // pairs of neighbours, brought into halves before (latent attention)
};
// q and k turned by their positions; the backward turns them back.
void rotary(KernelList& list, const LayerSetting& s, const Rotary& r, bool backward);

void bias_forward(KernelList& list, std::int64_t values);
void bias_backward(KernelList& list, const LayerSetting& s, std::int64_t values);

}  // namespace mllmsim::costs
