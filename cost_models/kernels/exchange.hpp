// Time of DeepEP's and HybridEP's dispatch and combine of tokens among the GPUs of a node.
//
//   time = base + copies * (per_copy + bytes / bandwidth),   copies = tokens * ranks per token
//
// A copy is one token on its way to one rank (its own counts: it is copied like the others), made
// by a warp of the few SMs that the library takes: short tokens cost their handling, long ones
// their bytes. Over the network a token goes to each other node once, to a GPU there that passes it
// on; both happen at the same time, so that the longer one counts:
//
//   time = max(in the node, all-to-all over the network of tokens * nodes per token)
//
// or, where the library itself was measured on that many nodes, with the share of a GPU's network
// that it reaches and what a call takes beside its kernel,
//
//   time = base + max(in the node, tokens * nodes per token * bytes / (share * network))
//
// Left out: tokens that some ranks get more of (the layer counts those of the busiest).
#pragma once

#include <span>

#include "cost_models/kernels/kernel_costs.hpp"
#include "cost_models/kernels/provenance.hpp"

namespace mllmsim::costs {

struct ExchangeLine {
  Seconds base{}, per_copy{};
  BytesPerSecond bandwidth{};  // of copied bytes
};

struct ExchangeModel {
  Provenance provenance;
  int sms = 0;    // that the library was given
  int ranks = 0;  // of a node, where it was measured
  ExchangeLine dispatch, combine;
};

struct NetworkExchangeLine {
  Seconds base{};
  double share = 0;  // of what a GPU can send to other nodes
};

struct NetworkExchange {
  Provenance provenance;
  int nodes = 0;
  NetworkExchangeLine dispatch, combine;
};

// Of a token for each other node that it goes to; between two numbers of nodes linear in their
// logarithm, beyond as the nearest. `network`: what a GPU can send.
Cost network_time(std::span<const NetworkExchange> measured, const TokenExchange& exchange,
                  BytesPerSecond network);
Seconds network_base(std::span<const NetworkExchange> measured, const TokenExchange& exchange);

// Inside a node.
Cost exchange_time(const ExchangeModel& model, const TokenExchange& exchange);
// The same from measurements with so many SMs on so many ranks each, at least one, by rising SMs
// and then ranks: those with the most SMs that the exchange has (or the fewest measured); between
// two numbers of ranks linear in log(ranks), beyond as the nearest.
Cost exchange_time(std::span<const ExchangeModel> measured, const TokenExchange& exchange);

// Of the bytes that leave each rank for others: in the same node, or for other nodes.
Collective node_all_to_all(const TokenExchange& exchange);
Collective network_all_to_all(const TokenExchange& exchange);

}  // namespace mllmsim::costs
