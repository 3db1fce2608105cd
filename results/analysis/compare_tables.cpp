// Reading what compare() takes, and writing what it gives.
#include <fmt/format.h>

#include <algorithm>
#include <sstream>

#include "results/analysis/compare.hpp"
#include "results/analysis/speed_up.hpp"
#include "results/run/run_fields.hpp"
#include "results/run/run_tables.hpp"
#include "results/sweep/sweep_summary.hpp"
#include "results/sweep/sweep_tables.hpp"
#include "results/text/figures.hpp"
#include "results/text/summary.hpp"

namespace mllmsim::analysis {
namespace {

namespace fs = std::filesystem;

VariedKey varied_key(const std::string& name, const tables::Column& column, std::size_t row) {
  const auto read = [&](const auto& values) -> VariedKey {
    const decltype(VariedKey::value) value(values[row]);
    return {name, fmt::format("{}", values[row]), value};
  };
  return std::visit(read, column);
}

// Keys that vary, in the order they first appear; strategies have a column of their own.
std::vector<std::string> varied_keys(const std::vector<ComparedRun>& runs) {
  std::vector<std::string> keys;
  for (const ComparedRun& run : runs)
    for (const auto& [key, text, value] : run.varied)
      if (key != "strategy.name" && key != "strategy" &&
          std::find(keys.begin(), keys.end(), key) == keys.end())
        keys.push_back(key);
  return keys;
}

const VariedKey* find(const ComparedRun& run, const std::string& key) {
  for (const VariedKey& varied : run.varied)
    if (varied.key == key) return &varied;
  return nullptr;
}

std::string varied_text(const ComparedRun& run, const std::string& key) {
  const VariedKey* varied = find(run, key);
  return varied ? varied->text : "";
}

template <class Values, class Get>
void add_column(tables::Table& table, const std::string& name, const std::vector<ComparedRun>& runs,
                Get get) {
  Values values;
  for (const ComparedRun& run : runs) values.push_back(get(run));
  table.columns.emplace_back(name, std::move(values));
}

// A column whose cells are null where `get` gives nothing.
template <class T, class Get>
void add_known(tables::Table& table, const std::string& name, const std::vector<ComparedRun>& runs,
               Get get) {
  std::vector<T> values;
  for (const ComparedRun& run : runs) {
    const std::optional<T> value = get(run);
    if (!value) table.set_null(name, values.size());
    values.push_back(value.value_or(T{}));
  }
  table.columns.emplace_back(name, std::move(values));
}

// Integers, numbers or truth values if all runs have such; where some have none, numbers with
// null for those, or texts with "".
void add_varied(tables::Table& table, const std::string& key,
                const std::vector<ComparedRun>& runs) {
  bool integers = true, numbers = true, truths = true;
  for (const ComparedRun& run : runs) {
    const VariedKey* varied = find(run, key);
    const bool integer = varied && std::holds_alternative<std::int64_t>(varied->value);
    integers &= integer;
    numbers &= !varied || integer || std::holds_alternative<double>(varied->value);
    truths &= varied && std::holds_alternative<bool>(varied->value);
  }
  const auto value = [&](const ComparedRun& run) { return find(run, key)->value; };
  if (integers)
    add_column<std::vector<std::int64_t>>(
        table, key, runs, [&](const auto& run) { return std::get<std::int64_t>(value(run)); });
  else if (truths)
    add_column<std::vector<bool>>(table, key, runs,
                                  [&](const auto& run) { return std::get<bool>(value(run)); });
  else if (numbers)
    add_known<double>(table, key, runs, [&](const auto& run) -> std::optional<double> {
      const VariedKey* varied = find(run, key);
      if (!varied) return std::nullopt;
      const auto* integer = std::get_if<std::int64_t>(&varied->value);
      return integer ? static_cast<double>(*integer) : std::get<double>(varied->value);
    });
  else
    add_column<tables::StringColumn>(table, key, runs,
                                     [&](const auto& run) { return varied_text(run, key); });
}

bool has_model(const ComparedRun& c) { return c.run.feasible() && !c.run.without_model(); }

}  // namespace

std::vector<ComparedRun> read_compared(const std::vector<fs::path>& paths) {
  std::vector<ComparedRun> out;
  for (const fs::path& path : paths) {
    const fs::path file = results::runs_file(path);
    results::RunRows rows = results::read_runs(file);
    std::vector<std::string> keys;
    const auto listed = rows.metadata.find("keys");
    const bool of_sweep = listed != rows.metadata.end();
    if (of_sweep) {
      std::istringstream lines(listed->second);
      for (std::string key; std::getline(lines, key);)
        keys.push_back(sweep::varied_column(rows.table, key));
    }
    const std::string label = results::label_of(file);
    for (std::size_t i = 0; i < rows.runs.size(); ++i) {
      ComparedRun run;
      for (const std::string& key : keys)
        if (const tables::Column* column = rows.table.find(key))
          run.varied.push_back(varied_key(key, *column, i));
      run.run = std::move(rows.runs[i]);
      run.label = label;
      run.of_sweep = of_sweep;
      out.push_back(std::move(run));
    }
  }
  return out;
}

results::TextTable comparison_text(const std::vector<ComparedRun>& runs,
                                   std::optional<double> price) {
  const std::vector<std::string> keys = varied_keys(runs);
  std::vector<results::TextColumn> columns{{"run", results::Align::left, true},
                                           {"strategy", results::Align::left}};
  for (const std::string& key : keys) columns.push_back({sweep::short_key(key)});
  for (const char* heading : {"GPUs", "iteration s", "GPU-days", "days"})
    columns.push_back({heading});
  if (price) columns.push_back({"cost"});
  for (const char* heading : {"speed-up", "MFU", "bubbles", "memory GiB"})
    columns.push_back({heading});
  results::TextTable table(std::move(columns));
  for (const ComparedRun& c : runs) {
    const results::RunResult& run = c.run;
    std::vector<std::string> cells{c.of_sweep ? run.name : c.label, run.strategy};
    for (const std::string& key : keys) cells.push_back(varied_text(c, key));
    cells.push_back(run.gpus > 0 ? std::to_string(run.gpus) : "-");
    if (run.fits) {
      results::add_time_cells(run, price, cells);
      cells.insert(
          cells.end(),
          {c.speed_up ? fmt::format("{:.2f}x", *c.speed_up) : "-", results::percent(run.mfu),
           results::percent(results::bubble_share(run)), results::memory_cell(run)});
    } else {
      cells.insert(cells.end(), price ? 7 : 6, "-");
      cells.push_back(results::memory_cell(run));
    }
    table.add_row(std::move(cells));
  }
  return table;
}

tables::Table comparison_table(const std::vector<ComparedRun>& runs, std::optional<double> price) {
  tables::Table table;
  const auto text = [&](const std::string& name, auto get) {
    add_column<tables::StringColumn>(table, name, runs, get);
  };
  using Number = std::optional<double>;
  const auto number = [&](const std::string& name, auto get) {
    add_known<double>(table, name, runs, get);
  };
  const auto timed = [&](const std::string& name, auto get) {
    number(name, [&](const ComparedRun& c) { return c.run.fits ? Number(get(c)) : Number(); });
  };
  using Run = const ComparedRun&;
  text("directory", [](Run c) { return c.label; });
  text("run", [](Run c) { return c.run.name; });
  text("strategy", [](Run c) { return c.run.strategy; });
  text("model", [](Run c) { return c.run.model; });
  text("work", [](Run c) { return c.run.work; });
  for (const std::string& key : varied_keys(runs)) add_varied(table, key, runs);
  using Whole = std::optional<std::int64_t>;
  add_known<std::int64_t>(table, "gpus", runs,
                          [](Run c) { return c.run.readable() ? Whole(c.run.gpus) : Whole(); });
  add_column<std::vector<bool>>(table, "feasible", runs, [](Run c) { return c.run.feasible(); });
  add_column<std::vector<bool>>(table, "fits", runs, [](Run c) { return c.run.fits; });
  text("reason", [](Run c) { return c.run.reason; });
  timed("iteration_s", [](Run c) { return c.run.iteration.value; });
  number("samples_per_step",
         [](Run c) { return c.run.feasible() ? Number(c.run.samples_per_step) : Number(); });
  timed("gpu_days", [](Run c) { return c.run.gpu_days; });
  timed("days", [](Run c) { return results::wall_clock_days(c.run); });
  if (price) timed("cost", [&](Run c) { return results::cost(c.run, *price); });
  number("speed_up", [](Run c) { return c.speed_up; });
  number("mfu", [](Run c) { return c.run.fits && has_model(c) ? Number(c.run.mfu) : Number(); });
  timed("bubble_share", [](Run c) { return results::bubble_share(c.run); });
  add_known<std::int64_t>(table, "peak_memory_bytes", runs, [](Run c) {
    return has_model(c) ? Whole(c.run.peak_memory.value) : Whole();
  });
  return table;
}

}  // namespace mllmsim::analysis
