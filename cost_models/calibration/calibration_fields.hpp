// The fields of a calibration file and of the estimate, listed once for reading and writing:
// describe(archive, value) calls archive(key, member) for each, or archive.optional(key, member)
// for what a file may leave out. Archives are in calibration_json.cpp.
#pragma once

#include <algorithm>
#include <utility>

#include "cost_models/calibration/calibration.hpp"
#include "cost_models/calibration/estimate.hpp"

namespace mllmsim::costs {

template <class A>
void describe(A& a, CalibrationHeader& h) {
  a("gpu", h.gpu);
  a("description", h.description);
  a("measured_by", h.measured_by);
  a("licence", h.licence);
  a("date", h.date);
  a("driver", h.driver);
  a("cuda", h.cuda);
  a("cublas", h.cublas);
  a("nccl", h.nccl);
  a("clocks", h.clocks);
}

template <class A>
void describe(A& a, Gpu& g) {
  a("peak_tflops", g.peak);
  a("memory_gb_per_s", g.memory_bandwidth);
  a("nvlink_gb_per_s", g.nvlink_bandwidth);
  a("sms", g.sms);
  a.require(g.sms > 0, "sms", "expected a number above 0");
  a("from", g.from);
  a.optional("peak_fp8_tflops", g.peak_fp8);
  a.optional("peak_fp4_tflops", g.peak_fp4);
  a.optional("products_in", g.products_in);
  a.require(!is_quantised(g.products_in), "products_in", "expected bf16, fp16 or fp32");
}

template <class A>
void describe(A& a, Provenance& p) {
  a("source", p.source);
  a("from", p.from);
  a("points", p.points);
  a("median_error", p.median_error);
  a("p90_error", p.p90_error);
}

template <class A>
void describe(A& a, Factor& f) {
  a.positive("factor", f.value);
  a("source", f.source);
  a("from", f.from);
}

template <class A>
void describe(A& a, GemmTile& t) {
  a("m", t.m);
  a("n", t.n);
  a.positive("rate", t.rate);
  a.require(t.m > 0 && t.n > 0, "m", "expected tile sizes above 0");
}

template <class A>
void describe(A& a, GemmParameters& p) {
  a("provenance", p.provenance);
  a("launch_us", p.launch);
  a("sharpness", p.sharpness);
  a("k_overhead", p.k_overhead);
  a.positive("memory_efficiency", p.memory_efficiency);
  a.positive("norm", p.norm);
  a("split_cost_us", p.split_cost);
  a("derate", p.derate);
  a("derate_time_us", p.derate_time);
  a("tiles", p.tiles);
  a.require(!p.tiles.empty(), "tiles", "expected at least one");
  a.require(p.sharpness >= 0 && p.sharpness <= 1, "sharpness", "expected 0 to 1");
  a.require(p.k_overhead >= 0, "k_overhead", "expected 0 or more");
  a.require(p.derate >= 0, "derate", "expected 0 or more");
}

template <class A>
void describe(A& a, QuantisedGemm& q) {
  a("format", q.format);
  a("large", q.large);
  a("all", q.all);
  a.optional("power", q.power);
  a.require(is_quantised(q.format), "format", "expected fp8, fp8_block, mxfp8 or nvfp4");
}

template <class A>
void describe(A& a, GroupedGemm& g) {
  a("format", g.format);
  describe(a, g.time);
}

template <class A>
void describe(A& a, GemmCorrection& c) {
  a("m", c.m);
  a("n", c.n);
  a("k", c.k);
  a("pass", c.pass);
  a("log_ratio", c.log_ratio);
  a.require(c.m > 0 && c.n > 0 && c.k > 0, "m", "expected sizes above 0");
}

template <class A>
void describe(A& a, GemmModel& m) {
  a("large", m.large);
  a("all", m.all);
  a("largest_m", m.largest_m);
  a("largest_n", m.largest_n);
  a("largest_k", m.largest_k);
  a("input_gradient", m.input_gradient);
  a("weight_gradient", m.weight_gradient);
  a.optional("power", m.power);
  a("sustained", m.sustained);
  a.optional("quantised", m.quantised);
  a.optional("grouped", m.grouped);
  a.optional("corrections", m.corrections);
  for (std::size_t i = 1; i < m.quantised.size(); ++i)
    a.require(m.quantised[i - 1].format < m.quantised[i].format, "quantised",
              "expected every format once, in order");
}

template <class A>
void describe(A& a, AttentionTable& t) {
  a("first_log2_length", t.first_length);
  a("first_log2_heads", t.first_heads);
  a("rows", t.rows);
  a("columns", t.columns);
  a("correction", t.correction);
  a.require(t.rows >= 0 && t.columns >= 0 &&
                t.correction.size() ==
                    static_cast<std::size_t>(t.rows) * static_cast<std::size_t>(t.columns),
            "correction", "expected rows * columns numbers");
}

template <class A>
void describe(A& a, AttentionKernel& k) {
  a("head_dim", k.head_dim);
  a("causal", k.causal);
  a("backward", k.backward);
  a("provenance", k.provenance);
  a("launch_us", k.launch);
  a.positive("rate", k.rate);
  a("k_overhead", k.k_overhead);
  a.positive("norm", k.norm);
  a.optional("tile", k.tile);
  a("table", k.table);
  a.require(k.head_dim > 0, "head_dim", "expected a number above 0");
  a.require(k.k_overhead >= 0, "k_overhead", "expected 0 or more");
  a.require(!k.tile || *k.tile > 0, "tile", "expected a number above 0");
}

template <class A>
void describe(A& a, OlderAttention& o) {
  a("generation", o.generation);
  describe(a, o.time);
}

template <class A>
void describe(A& a, BackwardRatio& r) {
  a.positive("length", r.length);
  a.positive("factor", r.factor);
}

template <class A>
void describe(A& a, AttentionModel& m) {
  a("generation", m.generation);
  a.require(m.generation >= 1 && m.generation <= 3, "generation", "expected 1, 2 or 3");
  a("older", m.older);
  for (int g = 1; g < m.generation; ++g) {
    bool found = false;
    for (const OlderAttention& o : m.older) found |= o.generation == g;
    a.require(found, "older", "expected every generation before the measured one");
  }
  a("backward", m.backward);
  a.optional("backward_by_length", m.backward_by_length);
  for (std::size_t i = 1; i < m.backward_by_length.size(); ++i)
    a.require(m.backward_by_length[i - 1].length < m.backward_by_length[i].length,
              "backward_by_length", "expected rising lengths");
  a.optional("sustained", m.sustained);
  a.optional("wide_keys", m.wide_keys);
  a.optional("wide_keys_backward", m.wide_keys_backward);
  a("kernels", m.kernels);
  bool forward = false;
  for (const AttentionKernel& k : m.kernels) forward |= !k.backward;
  a.require(forward, "kernels", "expected at least one forward kernel");
}

// Sizes and times as two lists, which read better than a list of pairs.
template <class A>
void describe(A& a, SizeCurve& c) {
  std::vector<double> bytes, us;
  for (const SizePoint& p : c.points) {
    bytes.push_back(p.bytes);
    us.push_back(p.time.value * 1e6);
  }
  a("latency_us", c.latency);
  a("bytes", bytes);
  a("us", us);
  a.require(!bytes.empty() && bytes.size() == us.size(), "us", "expected one time for each size");
  c.points.clear();
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    a.require(bytes[i] > (i == 0 ? 0 : bytes[i - 1]), "bytes", "expected rising sizes above 0");
    a.require(us[i] > 0 && (i == 0 || us[i] >= us[i - 1]), "us", "expected times that do not fall");
    c.points.push_back({bytes[i], Seconds{us[i] * 1e-6}});
  }
}

template <class A>
void describe(A& a, RowEfficiency& r) {
  a("row_length", r.row_length);
  a.positive("efficiency", r.efficiency);
  a.require(r.row_length > 0, "row_length", "expected a number above 0");
}

template <class A>
void describe(A& a, MemoryOperation& o) {
  a("op", o.op);
  a("provenance", o.provenance);
  a("rows", o.rows);
  a.optional("curve", o.curve);
  a.require(!o.rows.empty(), "rows", "expected at least one");
  for (std::size_t i = 1; i < o.rows.size(); ++i)
    a.require(o.rows[i - 1].row_length < o.rows[i].row_length, "rows", "expected rising lengths");
}

template <class A>
void describe(A& a, MemoryBoundModel& m) {
  a("launch_us", m.launch);
  a("operations", m.operations);
  a.require_each(m.operations, "operations", MemoryOp::optimizer);
}

template <class A>
void describe(A& a, NodeCollective& c) {
  a("op", c.op);
  a("ranks", c.ranks);
  a("curve", c.curve);
  a.require(c.ranks > 1, "ranks", "expected 2 or more");
}

template <class A>
void describe(A& a, NetworkLine& l) {
  a("tree", l.tree);
  a("base_us", l.base);
  a("network_step_us", l.network_step);
  a("node_step_us", l.node_step);
  a.positive("idle_efficiency", l.idle_efficiency);
  a.positive("busy_efficiency", l.busy_efficiency);
}

template <class A>
void describe(A& a, NetworkCollective& c) {
  a("op", c.op);
  a("provenance", c.provenance);
  a("smallest_bytes", c.smallest_bytes);
  a("lines", c.lines);
  a.require(!c.lines.empty(), "lines", "expected at least one");
}

template <class A>
void describe(A& a, CollectiveModel& m) {
  a("nvlink_gb_per_s", m.nvlink_bandwidth);
  a("node_provenance", m.node_provenance);
  a("node", m.node);
  a("network", m.network);
  a.require_each(m.node, "node", CollectiveOp::all_reduce);
  a.require_each(m.network, "network", CollectiveOp::all_reduce);
  for (std::size_t i = 1; i < m.node.size(); ++i)
    a.require(m.node[i - 1].op != m.node[i].op || m.node[i - 1].ranks < m.node[i].ranks, "node",
              "expected rising ranks for each op");
}

template <class A>
void describe(A& a, P2pModel& m) {
  a("nvlink_gb_per_s", m.nvlink_bandwidth);
  a("node_provenance", m.node_provenance);
  a("node", m.node);
  a("network_provenance", m.network_provenance);
  a("network_latency_us", m.network_latency);
  a("message_gb_per_s", m.message_bandwidth);
  a.positive("nic_efficiency", m.nic_efficiency);
}

template <class A>
void describe(A& a, ExchangeLine& l) {
  a("base_us", l.base);
  a("per_copy_us", l.per_copy);
  a("gb_per_s", l.bandwidth);
}

template <class A>
void describe(A& a, ExchangeModel& m) {
  a("provenance", m.provenance);
  a("sms", m.sms);
  a("ranks", m.ranks);
  a("dispatch", m.dispatch);
  a("combine", m.combine);
}

template <class A>
void describe(A& a, NetworkExchangeLine& l) {
  a("base_us", l.base);
  a.positive("share", l.share);
}

template <class A>
void describe(A& a, NetworkExchange& m) {
  a("provenance", m.provenance);
  a("nodes", m.nodes);
  a("dispatch", m.dispatch);
  a("combine", m.combine);
  a.require(m.nodes > 1, "nodes", "expected 2 or more");
}

template <class A>
void describe(A& a, RecurrenceModel& m) {
  a("provenance", m.provenance);
  a("launch_us", m.launch);
  a("tflops_per_sm", m.flops_per_sm);
  a("step_us", m.step);
  a("backward", m.backward);
  a("mamba", m.mamba);
  a.require(m.flops_per_sm.value > 0, "tflops_per_sm", "expected a number above 0");
}

template <class A>
void describe(A& a, Calibration& c) {
  a("header", c.header);
  a("gpu", c.gpu);
  a("gemm", c.gemm);
  a("attention", c.attention);
  a("memory_bound", c.memory_bound);
  a("collectives", c.collectives);
  a("point_to_point", c.p2p);
  a.optional("token_exchange", c.token_exchange);
  a.require(c.token_exchange.size() <= 1, "token_exchange", "expected at most one");
  a.optional("hybrid_exchange", c.hybrid_exchange);
  a.require(std::ranges::is_sorted(c.hybrid_exchange, {},
                                   [](const ExchangeModel& x) {
                                     return std::pair{x.sms, x.ranks};
                                   }),
            "hybrid_exchange", "expected rising sms, then ranks");
  a.optional("hybrid_network", c.hybrid_network);
  for (std::size_t i = 1; i < c.hybrid_network.size(); ++i)
    a.require(c.hybrid_network[i - 1].nodes < c.hybrid_network[i].nodes, "hybrid_network",
              "expected rising nodes");
  a.optional("recurrence", c.recurrence);
  a("overlap", c.overlap);
}

template <class A>
void describe(A& a, RingEstimate& r) {
  a("ranks", r.ranks);
  a("latency_us", r.latency);
  a.require(r.ranks > 1, "ranks", "expected 2 or more");
}

template <class A>
void describe(A& a, CollectiveEstimate& e) {
  a("node_provenance", e.node_provenance);
  a.positive("nvlink_efficiency", e.nvlink_efficiency);
  a("rings", e.rings);
  a("network", e.network);
  a.require(!e.rings.empty(), "rings", "expected at least one");
  a.require_each(e.network, "network", CollectiveOp::all_reduce);
}

template <class A>
void describe(A& a, P2pEstimate& e) {
  a("node_provenance", e.node_provenance);
  a("node_latency_us", e.node_latency);
  a.positive("nvlink_efficiency", e.nvlink_efficiency);
  a("network_provenance", e.network_provenance);
  a("network_latency_us", e.network_latency);
  a("message_gb_per_s", e.message_bandwidth);
  a.positive("nic_efficiency", e.nic_efficiency);
}

template <class A>
void describe(A& a, Estimate& e) {
  a("gemm", e.gemm);
  a("attention", e.attention);
  a("memory_bound", e.memory_bound);
  a("collectives", e.collectives);
  a("point_to_point", e.p2p);
  a("recurrence", e.recurrence);
  a("overlap", e.overlap);
}

}  // namespace mllmsim::costs
