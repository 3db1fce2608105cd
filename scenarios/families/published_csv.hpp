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
//   parallelism.sequence_parallel = { column = "tp", map = { 1 = false, "*" = true } }   others
//   parallelism.tensor_model_parallel_size = { column = "--tp", missing = 1 }
//   [points.published]
//   iteration_s = { column = "iteration time (ms)", times = 1e-3 }
//   peak_memory_bytes = { column = "mem", none = ["OOM", ""] }    rows without that figure
//   [[points.when]]                                        further changes of some rows, in order
//   where = { Backend = "unfused" }
//   set = { software.flash_attention = false }
//   [[points.leave_out]]                                   rows that no run can stand for
//   where = { Model = ["moe", "t5"] }
//   because = "no such model kind"
//
// A row with a cell that its map does not have is left out as well, and that is told; if none is
// left, that is an error. What `times` makes whole is a whole number ("8192.0" times 1 is 8192).
//
// With `json = "column"` that column holds arguments as a JSON object: columns that begin with --
// are its members, empty where it has none.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "scenarios/families/row_condition.hpp"
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
  std::optional<Node> missing;    // what an empty cell stands for
  std::vector<std::string> none;  // texts of a published cell that has no figure
};

struct CsvChange {
  RowCondition where;
  Node set;
};

struct CsvLeftOut {
  RowCondition where;
  std::string because;
};

struct CsvMapping {
  std::filesystem::path file;
  std::string id;
  std::string json;
  RowCondition where;
  std::vector<CsvCell> set, published;
  std::vector<CsvChange> when;
  std::vector<CsvLeftOut> leave_out;
};

struct CsvPoint {
  std::string id;
  Position position;
  Node set, published;        // tables
  std::vector<Node> changes;  // over `set`, in order
};

// Rows that no run can stand for.
struct LeftOut {
  std::string because;
  std::size_t rows = 0;
};

struct CsvPoints {
  std::vector<CsvPoint> points;
  std::vector<LeftOut> left_out;  // by leave_out, in its order, then by cells that no map has
};

CsvMapping read_csv_mapping(const Node& table, Problems& problems);
CsvPoints read_csv_points(const CsvMapping& mapping, const std::filesystem::path& file,
                          Problems& problems);

}  // namespace mllmsim::scenarios
