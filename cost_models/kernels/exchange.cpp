#include "cost_models/kernels/exchange.hpp"

#include <algorithm>
#include <cmath>

namespace mllmsim::costs {
namespace {

double copies(const TokenExchange& x) { return static_cast<double>(x.tokens) * x.ranks_per_token; }

}  // namespace

Cost exchange_time(const ExchangeModel& model, const TokenExchange& x) {
  const ExchangeLine& line = x.combine ? model.combine : model.dispatch;
  const Seconds each{line.per_copy.value + static_cast<double>(x.bytes) / line.bandwidth.value};
  return {line.base + each * copies(x), model.provenance.source};
}

Cost exchange_time(std::span<const ExchangeModel> measured, const TokenExchange& x) {
  int sms = measured.front().sms;
  for (const ExchangeModel& m : measured)
    if (m.sms <= x.sms) sms = m.sms;
  const auto first = std::ranges::find(measured, sms, &ExchangeModel::sms);
  const auto last =
      std::find_if(first, measured.end(), [sms](const ExchangeModel& m) { return m.sms != sms; });
  const std::span<const ExchangeModel> by_ranks(first, last);
  const int ranks = x.group.ranks_per_node();
  const auto above = std::ranges::lower_bound(by_ranks, ranks, {}, &ExchangeModel::ranks);
  if (above == by_ranks.begin()) return exchange_time(by_ranks.front(), x);
  if (above == by_ranks.end()) return exchange_time(by_ranks.back(), x);
  const Cost few = exchange_time(*(above - 1), x), many = exchange_time(*above, x);
  const double part = std::log2(static_cast<double>(ranks) / (above - 1)->ranks) /
                      std::log2(static_cast<double>(above->ranks) / (above - 1)->ranks);
  return {few.time + (many.time - few.time) * part, weaker(few.source, many.source)};
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
