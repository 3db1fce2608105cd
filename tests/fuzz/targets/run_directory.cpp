// The tables of a run, edited (table_edits.hpp), read by report, trace, plot and compare.
#include "results/analysis/compare.hpp"
#include "results/charts/timeline_chart.hpp"
#include "results/report/report.hpp"
#include "results/run/run_scenario.hpp"
#include "results/run/run_tables.hpp"
#include "results/text/json.hpp"
#include "results/trace/trace.hpp"
#include "sim/tables/csv.hpp"
#include "tests/fuzz/draw.hpp"
#include "tests/fuzz/fuzz.hpp"
#include "tests/fuzz/table_edits.hpp"

namespace mllmsim::fuzz {
namespace {

Files small_run() {
  using namespace results;
  const RunResult run = run_scenario(scenarios::read_scenario_text(kSmallRun, "run"));
  const tables::Metadata metadata = run_metadata(run);
  const std::span<const RunResult> runs(&run, 1);
  return {{"runs", {runs_table(runs), metadata}},     {"plan", {plan_table(runs), metadata}},
          {"stages", {stages_table(runs), metadata}}, {"steps", {steps_table(runs), metadata}},
          {"spans", {spans_table(runs), metadata}},   {"memory", {memory_table(runs), metadata}}};
}

void compare(const std::filesystem::path& directory) {
  const auto rows = analysis::read_compared({directory, directory});
  for (const char* by : {"", "strategy"}) {
    const auto runs = analysis::compared(rows, "", by);
    analysis::comparison_text(runs, 2.5).markdown();
    tables::to_csv(analysis::comparison_table(runs));
    results::to_json(analysis::comparison_table(runs), "runs");
  }
}

void read(const std::string& bytes) {
  static EditedDirectory edited(scratch() / "run", small_run());
  hide_gnuplot();
  const std::filesystem::path directory = scratch() / "run";
  edited.change(bytes);
  attempt([&] { compare(directory); });
  const results::RunResult run = results::read_run(directory);
  const std::span<const results::RunResult> runs(&run, 1);
  attempt([&] { results::to_trace(run, {}); });
  attempt([&] { draw(charts::timeline_chart(runs, {})); });
  attempt([&] { draw(charts::bubbles_chart(runs)); });
  attempt([&] { draw(charts::memory_chart(runs, {})); });
  std::vector<std::string> notes;
  const report::ReportRun reported{run, directory.string(), "1"};
  report::to_html({&reported, 1}, {}, notes);
}

const Registered kTarget("run_directory", read);

}  // namespace
}  // namespace mllmsim::fuzz
