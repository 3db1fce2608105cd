// Raw measurements: what the calibration program writes, importers produce and the fit reads.
//
// A file is JSON lines. The first is {"header": {...}}, whose known keys are those of
// CalibrationHeader and "source", what provenance shall call the measurements (others are ignored:
// it may hold more about the machine). Each further line is one measurement, times in microseconds:
//
//   {"part":"gemm","m":..,"n":..,"k":..,"pass":"forward","us":..}      "mode":"sustained" if so,
//                                                "format":"fp8" or another if not bf16, "serving",
//                                                "experts":8 for as many in one launch
//   {"part":"experts","tokens":..,"rows":..,"experts":..,"hidden_size":..,"width":..,"us":..}
//   {"part":"token_exchange","combine":false,"tokens":..,"bytes":..,"ranks_per_token":..,
//    "ranks":8,"sms":20,"us":..}
//   {"part":"attention","length":..,"batch":..,"heads":..,"kv_heads":..,"head_dim":..,
//    "causal":true,"backward":false,"us":..}                           "serving":true, see below
//   {"part":"memory_bound","op":"norm","bytes":..,"rows":..,"row_length":..,"us":..}
//   {"part":"collective","op":"all_gather","ranks":..,"nodes":..,"bytes":..,"us":..}
//   {"part":"p2p","same_node":true,"bytes":..,"us":..}
//   {"part":"launch","us":..}
//   {"part":"overlap","slowdown":..}
//
// A serving measurement is of an inference engine: its attention also writes keys and values to a
// paged cache, its GEMMs below 16 bits also quantise their input; the fit separates that. Keys that
// say how a line was measured ("spread", "samples", ...) and parts that no model uses ("copy") are
// ignored.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "cost_models/calibration/calibration.hpp"

namespace mllmsim::fit {

template <class Kernel>
struct Measurement {
  Kernel kernel;
  Seconds time{};
};

struct GemmMeasurement : Measurement<costs::Gemm> {
  bool sustained = false;
  bool serving = false;
};
struct AttentionMeasurement : Measurement<costs::Attention> {  // one group of equal lengths
  bool serving = false;
};

// A serving engine's experts on one rank, gated: rows gathered from tokens, two grouped products
// with the activation between them, rows summed back.
struct ExpertsMeasurement {
  std::int64_t tokens = 0, rows = 0, experts = 0, hidden_size = 0, width = 0;
  NumberFormat format = NumberFormat::bf16;
  Seconds time{};
};
struct ExchangeMeasurement : Measurement<costs::TokenExchange> {
  int sms = 0;
};

struct RawData {
  costs::CalibrationHeader header;
  std::map<std::string, std::vector<std::string>> sources;  // by part, for provenance
  std::vector<GemmMeasurement> gemm;
  std::vector<AttentionMeasurement> attention;
  std::vector<Measurement<costs::MemoryBound>> memory_bound;
  std::vector<Measurement<costs::Collective>> collectives;
  std::vector<Measurement<costs::PointToPoint>> p2p;
  std::vector<ExpertsMeasurement> experts;
  std::vector<ExchangeMeasurement> exchanges;
  std::vector<Seconds> launch;
  std::vector<double> overlap;

  std::size_t size() const;
  void set_source(const std::string& source);  // of every part that has measurements
  void append(RawData other);                  // keeps this header where it says something
  void join_equal();  // operators of equal shape become one, of the median time
  // Products in fp32 are those of a machine that trains in it if they are all there is; beside
  // others they are a step's few odd ones.
  void drop_odd_fp32();
};

// JSON lines, or a table if the name ends in .csv (raw_csv.cpp) or in what was registered.
RawData read_raw(const std::filesystem::path& file);
// From here on read_raw() takes files whose names end so: ".parquet", in programs with Arrow.
using RawReader = RawData (*)(const std::filesystem::path&);
void register_raw_format(const std::string& extension, RawReader reader);
RawData parse_raw(const std::string& text, const std::string& file);
RawData parse_raw_csv(const std::string& text, const std::string& file);
std::string to_json_lines(const RawData& raw);
// The same kernels without header and results: what to measure, for `mllmsim-calibrate --shapes`.
std::string to_shape_lines(const RawData& raw);

}  // namespace mllmsim::fit
