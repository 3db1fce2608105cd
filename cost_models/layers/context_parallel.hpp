// Flash attention of sequences that are cut over cp ranks, with the communication it needs, as
// Transformer Engine does it (transformer_engine/pytorch/attention/.../context_parallel.py).
//
// With L = s / cp tokens of every sequence on a rank (two pieces of s / 2cp, for balance) and
// kv = 2 L (key-value width) values of keys and values:
//
//   p2p         cp steps. In the first a rank attends to its own keys, causally; in each other one
//               to half of the keys of another rank with all its queries, or to all with half of
//               them: L^2 / 2 scores as well, so all take as long as a causal sequence of L.
//               Beside each step kv travels to the next rank, backwards with the gradients: 2 kv.
//               What steps leave is added up.
//   all_gather  keys and values of all ranks are gathered, backwards again, and their gradients are
//               scattered. A rank's two pieces are 1/cp of the work of the whole sequence.
//   a2a         heads change places with tokens, and back: a rank has whole sequences of 1/cp of
//               the heads.
//
// Not causal: every step of p2p has L^2 scores. Left out: SMs that messages take from attention.
#pragma once

#include "cost_models/layers/block_kernels.hpp"

namespace mllmsim::costs {

void context_parallel_forward(KernelList& list, const Block& block, const TokenBatch& batch);
void context_parallel_backward(KernelList& list, const Block& block, const TokenBatch& batch);

// What one rank sends for the attention of one pass over one block: what a golden test of bytes on
// the wire asks.
Bytes context_parallel_bytes(const Block& block, const TokenBatch& batch, bool backward);

}  // namespace mllmsim::costs
