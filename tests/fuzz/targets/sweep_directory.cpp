// The tables of a sweep in two shards, edited (table_edits.hpp), read by merge, compare and plot;
// and those of pack and validate, read by plot.
#include <cstdio>

#include "results/analysis/compare.hpp"
#include "results/charts/table_charts.hpp"
#include "results/run/run_tables.hpp"
#include "results/sweep/sweep_tables.hpp"
#include "scenarios/tree/toml_parse.hpp"
#include "tests/fuzz/draw.hpp"
#include "tests/fuzz/fuzz.hpp"
#include "tests/fuzz/table_edits.hpp"

namespace mllmsim::fuzz {
namespace {

namespace fs = std::filesystem;

tables::StringColumn texts(std::initializer_list<const char*> values) {
  tables::StringColumn out;
  for (const char* value : values) out.push_back(value);
  return out;
}

Files small_sweep() {
  Files files;
  const fs::path run = scratch_file("small.toml", kSmallRun);
  Progress progress(stderr, false);
  const auto sweep = scenarios::read_sweep(scenarios::parse_toml(kSmallRun, "run"),
                                           {"parallelism.micro_batch_size=1,2"}, "baseline,zero3");
  for (const std::size_t index : {1, 2}) {
    const sweep::SweepJob job{run, {}, sweep, {index, 2}};
    const fs::path name = sweep::shard_directory("", job.shard);
    const auto tables = sweep::tables_of(
        sweep, sweep::run_sweep(job, scratch() / name, progress, [] { return false; }));
    files[(name / "runs").string()] = {tables.runs, tables.metadata};
    files[(name / "stages").string()] = {tables.stages, tables.metadata};
  }
  using Integers = std::vector<std::int64_t>;
  files["packs"] = {{{{"pack", Integers{0, 0, 1}},
                      {"tiles", Integers{1, 3, 5}},
                      {"tokens", Integers{100, 200, 300}}}},
                    {{"data", "a"}, {"algorithm", "isf"}, {"q_v", "9"}, {"seed", "1"}}};
  files["validation"] = {{{{"source", texts({"a", "a", "b"})},
                           {"metric", texts({"iteration_s", "mfu", "stages.0.forward_s"})},
                           {"predicted", std::vector<double>{1, 0.4, 0.1}},
                           {"published", std::vector<double>{1.1, 0.5, 0.09}}}},
                         {}};
  return files;
}

void read(const std::string& bytes) {
  static EditedDirectory edited(scratch(), small_sweep());
  hide_gnuplot();
  edited.change(bytes);
  attempt([&] { draw(charts::packing_chart(tables::read_parquet(scratch() / "packs.parquet"))); });
  attempt([&] {
    draw(charts::validation_chart(tables::read_parquet(scratch() / "validation.parquet").table));
  });
  const fs::path shard = scratch() / "shard-1-of-2";
  attempt([&] {
    const auto swept = analysis::read_compared({shard});
    for (const char* by : {"", "strategy", "micro_batch_size"}) {
      const auto runs = analysis::compared(swept, "", by);
      analysis::comparison_text(runs).markdown();
      if (*by) analysis::summary_by(runs, by).text(0, 120);
    }
  });
  const auto rows = tables::read_parquet(results::runs_file(shard)).table;
  attempt([&] { draw(charts::sweep_chart(rows, {})); });
  attempt([&] { draw(charts::speedup_chart(rows, {})); });
  sweep::merge_sweeps(sweep::find_shards({scratch()}));
}

const Registered kTarget("sweep_directory", read);

}  // namespace
}  // namespace mllmsim::fuzz
