// Points from a CSV file: which column becomes which key of the run, and which the published
// figure.
//
//   [points]
//   csv = "runs.csv"
//   id = "{Model} on {#_GPUs}"                             columns in braces
//   where = { GPU = "a100", Precision = "amp_bf16" }       rows with these cells only
//   [points.set]
//   parallelism.micro_batch_size = "MicroBatchSize"        the column's cell as it is
//   model.llm.intermediate_size = { column = "d_model", times = 4 }
//   recompute = { column = "Activation_Checkpointing", map = { True = "full", False = "none" } }
//   [points.published]
//   iteration_s = { column = "iteration time (ms)", times = 1e-3 }
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "scenarios/tree/node.hpp"
#include "scenarios/tree/problems.hpp"

namespace mllmsim::scenarios {

struct CsvCell {
  std::string key;  // dotted
  std::string column;
  double times = 1;
  bool scaled = false;
  Node::Table map;  // what a cell's text stands for; empty: itself
  bool mapped = false;
};

struct CsvMapping {
  std::filesystem::path file;
  std::string id;
  std::map<std::string, std::string> where;
  std::vector<CsvCell> set, published;
};

struct CsvPoint {
  std::string id;
  Position position;
  Node set, published;  // tables
};

CsvMapping read_csv_mapping(const Node& table, Problems& problems);
std::vector<CsvPoint> read_csv_points(const CsvMapping& mapping, const std::filesystem::path& file,
                                      Problems& problems);

}  // namespace mllmsim::scenarios
