#include "cost_models/fit/show.hpp"

#include <fmt/format.h>
#include <fmt/ostream.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "cost_models/calibration/calibrated_costs.hpp"
#include "cost_models/kernels/names.hpp"

namespace mllmsim::fit {
namespace {

class Table {
 public:
  explicit Table(std::ostream& out) : out_(out) {
    fmt::print(out_, "{:<34} {:<13} {:>7} {:>8} {:>8}\n", "part", "source", "points", "median",
               "p90");
  }

  void row(const std::string& part, const costs::Provenance& p) {
    fmt::print(out_, "{:<34} {:<13}", part, name_of(p.source));
    if (p.points > 0 && p.median_error == 0 && p.p90_error == 0) {  // too few to hold some out
      fmt::print(out_, " {:>7} {:>8} {:>8}\n", p.points, "-", "-");
    } else if (p.points > 0) {
      fmt::print(out_, " {:>7} {:>7.1f}% {:>7.1f}%\n", p.points, 100 * p.median_error,
                 100 * p.p90_error);
    } else {
      fmt::print(out_, " {:>7} {:>8} {:>8}\n", "-", "-", "-");
    }
    remember(part, p.from);
  }

  void factor(const std::string& part, const costs::Factor& f) {
    fmt::print(out_, "{:<34} {:<13} x {:.3f}\n", part, name_of(f.source), f.value);
    remember(part, f.from);
  }

  void remember(const std::string& part, const std::string& from) {
    const auto known =
        std::find_if(texts_.begin(), texts_.end(), [&](const Text& t) { return t.from == from; });
    if (known != texts_.end())
      known->parts.push_back(part);
    else
      texts_.push_back({from, {part}});
  }

  void print_texts() const {
    fmt::print(out_, "\n");
    for (const Text& t : texts_)
      fmt::print(out_, "{}\n    {}\n", fmt::join(t.parts, "; "),
                 t.from.empty() ? "not said" : t.from);
  }

 private:
  struct Text {
    std::string from;
    std::vector<std::string> parts;
  };

  std::ostream& out_;
  std::vector<Text> texts_;  // in the order of the rows
};

}  // namespace

void show(const costs::Calibration& c, std::ostream& out) {
  fmt::print(out, "{}\n{}\n", c.header.gpu, c.header.description);
  std::string quantised;
  if (c.gpu.peak_fp8.value > 0) quantised += fmt::format(", {:g} fp8", c.gpu.peak_fp8.value / 1e12);
  if (c.gpu.peak_fp4.value > 0) quantised += fmt::format(", {:g} fp4", c.gpu.peak_fp4.value / 1e12);
  fmt::print(out, "{} {}{}, memory {:.4g} GB/s, NVLink {:.4g} GB/s per direction, {} SMs\n\n",
             costs::rate_text(c.gpu.peak), name_of(c.gpu.products_in), quantised,
             c.gpu.memory_bandwidth.value / 1e9, c.gpu.nvlink_bandwidth.value / 1e9, c.gpu.sms);
  Table table(out);
  table.remember("data sheet", c.gpu.from);
  table.row(fmt::format("gemm, m n k >= {}", costs::kLargeGemm), c.gemm.large.provenance);
  table.row("gemm, all", c.gemm.all.provenance);
  for (const costs::QuantisedGemm& q : c.gemm.quantised) {
    table.row(fmt::format("gemm {}, m n k >= {}", name_of(q.format), costs::kLargeGemm),
              q.large.provenance);
    table.row(fmt::format("gemm {}, all", name_of(q.format)), q.all.provenance);
  }
  table.factor("gemm, input gradient", c.gemm.input_gradient);
  table.factor("gemm, weight gradient", c.gemm.weight_gradient);
  if (c.gemm.power) table.factor("gemm, power limit", *c.gemm.power);
  for (const costs::QuantisedGemm& q : c.gemm.quantised)
    if (q.power) table.factor(fmt::format("gemm {}, power limit", name_of(q.format)), *q.power);
  table.factor("gemm, sustained", c.gemm.sustained);
  for (const costs::GroupedGemm& g : c.gemm.grouped)
    table.factor(fmt::format("gemm {}, of experts", name_of(g.format)), g.time);
  for (const costs::AttentionKernel& k : c.attention.kernels)
    table.row(fmt::format("attention, dim {}{}{}", k.head_dim, k.causal ? ", causal" : "",
                          k.backward ? ", backward" : ""),
              k.provenance);
  table.factor("attention, backward / forward", c.attention.backward);
  if (c.attention.sustained) table.factor("attention, sustained", *c.attention.sustained);
  if (c.attention.wide_keys)
    table.factor("attention, keys wider than values", *c.attention.wide_keys);
  if (c.attention.wide_keys_backward)
    table.factor("attention, keys wider than values, backward", *c.attention.wide_keys_backward);
  for (const costs::OlderAttention& o : c.attention.older)
    table.factor(fmt::format("FlashAttention {} / {}", o.generation, c.attention.generation),
                 o.time);
  for (const costs::MemoryOperation& o : c.memory_bound.operations)
    table.row(fmt::format("memory bound, {}", name_of(o.op)), o.provenance);
  table.row("collectives in a node", c.collectives.node_provenance);
  for (const costs::NetworkCollective& n : c.collectives.network)
    table.row(fmt::format("{} across nodes", name_of(n.op)), n.provenance);
  table.row("point to point in a node", c.p2p.node_provenance);
  table.row("point to point across nodes", c.p2p.network_provenance);
  for (const costs::ExchangeModel& x : c.token_exchange)
    table.row(fmt::format("token exchange (DeepEP, {} SMs)", x.sms), x.provenance);
  for (const costs::ExchangeModel& x : c.hybrid_exchange)
    table.row(fmt::format("token exchange (HybridEP, {} SMs, {} ranks)", x.sms, x.ranks),
              x.provenance);
  for (const costs::NetworkExchange& x : c.hybrid_network)
    table.row(fmt::format("token exchange across {} nodes (HybridEP)", x.nodes), x.provenance);
  if (c.recurrence) table.row("recurrence in chunks", c.recurrence->provenance);
  table.factor("overlap, gemm beside collective", c.overlap);
  table.print_texts();
}

}  // namespace mllmsim::fit
