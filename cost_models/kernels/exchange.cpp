#include "cost_models/kernels/exchange.hpp"

#include <algorithm>

namespace mllmsim::costs {
namespace {

double copies(const TokenExchange& x) { return static_cast<double>(x.tokens) * x.ranks_per_token; }

}  // namespace

Cost exchange_time(const ExchangeModel& model, const TokenExchange& x) {
  const ExchangeLine& line = x.combine ? model.combine : model.dispatch;
  const Seconds each{line.per_copy.value + static_cast<double>(x.bytes) / line.bandwidth.value};
  return {line.base + each * copies(x), model.provenance.source};
}

Collective node_all_to_all(const TokenExchange& x) {
  GroupShape near = x.group;
  near.ranks = x.group.ranks_per_node();
  near.nodes = 1;
  return {CollectiveOp::all_to_all, scaled(Bytes{x.bytes}, copies(x)), near};
}

// An all-to-all's bytes are those for all ranks, of which (n - r)/n leave a node of r ranks.
Collective network_all_to_all(const TokenExchange& x) {
  const double leaving = static_cast<double>(x.group.ranks - x.group.ranks_per_node()) /
                         static_cast<double>(x.group.ranks);
  return {CollectiveOp::all_to_all,
          scaled(Bytes{x.bytes}, static_cast<double>(x.tokens) * x.nodes_per_token / leaving),
          x.group};
}

Cost KernelCosts::token_exchange(const TokenExchange& x) const {
  const Cost near = collective(node_all_to_all(x));
  if (x.group.nodes == 1) return near;
  const Cost far = collective(network_all_to_all(x));
  return far.time > near.time ? far : near;
}

}  // namespace mllmsim::costs
