// A calibration: everything measured or assumed about one kind of machine, in one JSON file.
//
// A calibration is data: users add one without recompiling. Keys carry their units (_us, _gb_per_s,
// _tflops); every part carries its provenance. Reading is strict: what is missing, of the wrong
// type or unknown is a UserError with file and JSON path. Writing is canonical: the same
// calibration gives the same bytes.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "cost_models/kernels/attention.hpp"
#include "cost_models/kernels/collectives.hpp"
#include "cost_models/kernels/exchange.hpp"
#include "cost_models/kernels/gemm.hpp"
#include "cost_models/kernels/gpus.hpp"
#include "cost_models/kernels/memory_bound.hpp"
#include "cost_models/kernels/p2p.hpp"
#include "cost_models/kernels/recurrence.hpp"

namespace mllmsim::costs {

// Free text; empty where it is not known.
struct CalibrationHeader {
  std::string gpu;
  std::string description;
  std::string measured_by, licence, date;
  std::string driver, cuda, cublas, nccl, clocks;
};

struct Calibration {
  CalibrationHeader header;
  Gpu gpu;
  GemmModel gemm;
  AttentionModel attention;
  MemoryBoundModel memory_bound;
  CollectiveModel collectives;
  P2pModel p2p;
  std::vector<ExchangeModel> token_exchange{};    // one, or none if it was not measured
  std::vector<ExchangeModel> hybrid_exchange{};   // by rising SMs, then ranks, or none
  std::vector<NetworkExchange> hybrid_network{};  // by rising nodes, or none
  std::optional<RecurrenceModel> recurrence{};    // if not, the shipped estimate's
  Factor overlap;  // time of a GEMM beside a collective over its time alone
};

// Calls f on the provenance of every part.
template <class C, class F>
void each_provenance(C& c, F f) {
  f(c.gemm.large.provenance);
  f(c.gemm.all.provenance);
  for (auto& q : c.gemm.quantised) f(q.large.provenance), f(q.all.provenance);
  for (auto& k : c.attention.kernels) f(k.provenance);
  for (auto& o : c.memory_bound.operations) f(o.provenance);
  f(c.collectives.node_provenance);
  for (auto& n : c.collectives.network) f(n.provenance);
  f(c.p2p.node_provenance);
  f(c.p2p.network_provenance);
  for (auto& x : c.token_exchange) f(x.provenance);
  for (auto& x : c.hybrid_exchange) f(x.provenance);
  for (auto& x : c.hybrid_network) f(x.provenance);
  if (c.recurrence) f(c.recurrence->provenance);
}
template <class C, class F>
void each_factor(C& c, F f) {
  for (auto* factor : {&c.gemm.input_gradient, &c.gemm.weight_gradient, &c.gemm.sustained,
                       &c.attention.backward, &c.overlap})
    f(*factor);
  if (c.gemm.power) f(*c.gemm.power);
  for (auto& q : c.gemm.quantised)
    if (q.power) f(*q.power);
  for (auto& g : c.gemm.grouped) f(g.time);
  for (auto& o : c.attention.older) f(o.time);
  for (auto* factor :
       {&c.attention.sustained, &c.attention.wide_keys, &c.attention.wide_keys_backward})
    if (*factor) f(**factor);
  if (c.recurrence) f(c.recurrence->backward), f(c.recurrence->mamba);
}

Calibration read_calibration(const std::filesystem::path& file);
Calibration parse_calibration(const std::string& text, const std::string& file);
std::string to_json(const Calibration& calibration);

// Another machine's calibration as a starting point for `gpu_name`: efficiencies are kept, the data
// sheet changes, nothing is better than transferred.
Calibration transferred(Calibration from, const std::string& gpu_name);

// Multiplies the times of one part ("gemm", "attention", "memory_bound", "collectives",
// "point_to_point") and marks it transferred. UserError for other names and factors not above 0.
// GEMMs that would become faster than the data sheet's peak are of another GPU: its peaks rise with
// them, and their efficiency stays.
void scale(Calibration& calibration, const std::string& part, double factor);

}  // namespace mllmsim::costs
