#include "cost_models/kernels/exchange.hpp"

#include <algorithm>
#include <cmath>

namespace mllmsim::costs {
namespace {

double copies(const TokenExchange& x) { return static_cast<double>(x.tokens) * x.ranks_per_token; }

struct Between {
  const NetworkExchange &few, &many;
  double part;
  Source source;

  NetworkExchangeLine line(bool combine) const {
    const auto of = [&](const NetworkExchange& n) { return combine ? n.combine : n.dispatch; };
    const auto mix = [&](auto low, auto high) { return low + (high - low) * part; };
    return {mix(of(few).base, of(many).base), mix(of(few).share, of(many).share)};
  }
};

Between between(std::span<const NetworkExchange> measured, int nodes) {
  const auto above = std::ranges::lower_bound(measured, nodes, {}, &NetworkExchange::nodes);
  if (above == measured.end())
    return {measured.back(), measured.back(), 0, measured.back().provenance.source};
  if (above == measured.begin() || above->nodes == nodes)
    return {*above, *above, 0, above->provenance.source};
  const NetworkExchange& below = *(above - 1);
  const double part = std::log2(static_cast<double>(nodes) / below.nodes) /
                      std::log2(static_cast<double>(above->nodes) / below.nodes);
  return {below, *above, part, weaker(below.provenance.source, above->provenance.source)};
}

}  // namespace

Cost network_time(std::span<const NetworkExchange> measured, const TokenExchange& x,
                  BytesPerSecond network) {
  const Between at = between(measured, x.group.nodes);
  const double bytes =
      static_cast<double>(x.tokens) * x.nodes_per_token * static_cast<double>(x.bytes);
  return {Seconds{bytes / (network.value * at.line(x.combine).share)}, at.source};
}

Seconds network_base(std::span<const NetworkExchange> measured, const TokenExchange& x) {
  return between(measured, x.group.nodes).line(x.combine).base;
}

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

double KernelCosts::slowdown_beside_exchange(int) const {
  return gemm_slowdown_beside_collective();
}

Cost KernelCosts::token_exchange(const TokenExchange& x) const {
  const Cost near = collective(node_all_to_all(x));
  if (x.group.nodes == 1) return near;
  const Cost far = collective(network_all_to_all(x));
  return far.time > near.time ? far : near;
}

}  // namespace mllmsim::costs
