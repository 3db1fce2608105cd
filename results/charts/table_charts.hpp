// Pictures of tables: sweeps, packs, validation. Each takes a table as its command wrote it.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "results/plot/chart.hpp"
#include "sim/tables/parquet.hpp"

namespace mllmsim::charts {

// The keys that a sweep varies, besides strategies: columns that differ, and that other runs do not
// have or a sweep fills (sweep_tables.hpp).
std::vector<std::string> swept_keys(const tables::Table& runs);

// The one model of all rows that name one; empty if they differ.
std::string model_of(const tables::Table& runs);

struct SweepPicture {
  std::string x;                             // a swept key; empty: the first that `where` leaves
  std::string y = "gpu_days";                // any column of numbers
  std::map<std::string, std::string> where;  // only rows with these values
  std::string baseline;             // of speed-ups: a strategy; empty: "baseline", else the first
  std::vector<std::string> labels;  // what the reader called each row, where it is a run
};

// A column over a swept key, one line per strategy and value of what else varies; if those are too
// many for one panel, one panel per value of what else varies. `runs` is a sweep's
// runs.parquet: the columns of runs and one for each swept key. Rows that do not fit are left out.
plot::Chart sweep_chart(const tables::Table& runs, const SweepPicture& picture);

// GPU-days of the baseline over those of each strategy: as sweep_chart, or as bars if nothing
// varies.
plot::Chart speedup_chart(const tables::Table& runs, const SweepPicture& picture);

// Tiles and tokens of each micro-batch, sorted: the packs that `mllmsim pack` wrote, and random
// micro-batches of the same samples, as many per micro-batch as a pack has in the mean.
plot::Chart packing_chart(const tables::ParquetFile& packs);

// Predicted against published figures with a band of 10 %, a panel for each kind of figure.
plot::Chart validation_chart(const tables::Table& rows);

}  // namespace mllmsim::charts
