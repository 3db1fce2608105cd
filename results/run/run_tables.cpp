#include "results/run/run_tables.hpp"

#include <fmt/format.h>

#include "results/run/run_fields.hpp"
#include "results/run/version.hpp"
#include "sim/base/errors.hpp"
#include "sim/base/files.hpp"

namespace mllmsim::results {
namespace {

template <class T>
struct ValuesOf {
  using type = std::vector<T>;
};
template <>
struct ValuesOf<std::string> {
  using type = tables::StringColumn;
};
template <class T>
using ColumnOf = typename ValuesOf<std::remove_cvref_t<decltype(plain(std::declval<T>()))>>::type;

// Adds an empty column for each field.
struct Declare {
  tables::Table& table;

  template <class T>
  void field(std::string_view name, const T&) {
    table.columns.emplace_back(name, ColumnOf<T>{});
  }
  template <class T>
  void derived(std::string_view name, const T& value) {
    field(name, value);
  }
};

// Appends one row; fields come in the order they were declared.
struct Append {
  tables::Table& table;
  std::size_t next = 0;

  template <class T>
  void field(std::string_view, const T& value) {
    std::get<ColumnOf<T>>(table.columns[next++].second).push_back(plain(value));
  }
  template <class T>
  void derived(std::string_view name, const T& value) {
    field(name, value);
  }
};

// Columns are looked up once, by name: a file may have more of them, in another order.
struct Find {
  const tables::Table& table;
  const std::filesystem::path& path;
  std::vector<const tables::Column*> columns{};

  template <class T>
  void field(std::string_view name, const T&) {
    const tables::Column* column = table.find(name);
    if (column == nullptr || !std::holds_alternative<ColumnOf<T>>(*column))
      throw EnvironmentError(
          fmt::format("cannot read {}: no column {} of the expected type", path.string(), name));
    columns.push_back(column);
  }
  template <class T>
  void derived(std::string_view, const T&) {}
};

struct Read {
  const std::vector<const tables::Column*>& columns;
  const std::filesystem::path& path;
  std::size_t row = 0;
  std::size_t next = 0;

  template <class Tag, class Rep>
  void field(std::string_view name, Quantity<Tag, Rep>& to) {
    field(name, to.value);
  }
  template <NamedEnum Enum>
  void field(std::string_view name, Enum& to) {
    const std::string& text = std::get<tables::StringColumn>(*columns[next++])[row];
    const std::optional<Enum> value = named<Enum>(text);
    if (!value)
      throw UserError(path.string(), std::string(name),
                      fmt::format("expected {}; found \"{}\"", choices<Enum>(), text));
    to = *value;
  }
  template <class T>
  void field(std::string_view, T& to) {
    to = static_cast<T>(std::get<ColumnOf<T>>(*columns[next++])[row]);
  }
  template <class T>
  void derived(std::string_view, const T&) {}
};

template <class Row, class Rows>  // Rows: RunResult -> range of Row
tables::Table table_of(std::span<const RunResult> runs, Rows rows) {
  tables::Table table;
  Declare declare{table};
  const RunResult no_run;
  const Row no_row;
  each_key(no_run, declare);
  each_field(no_row, declare);
  for (const RunResult& run : runs)
    for (const Row& row : rows(run)) {
      Append append{table};
      each_key(run, append);
      each_field(row, append);
    }
  return table;
}

template <class Row>
std::vector<Row> rows_of(const tables::Table& table, const std::filesystem::path& path) {
  Find find{table, path};
  const Row no_row;
  each_field(no_row, find);
  std::vector<Row> rows(table.rows());
  for (std::size_t i = 0; i < rows.size(); ++i) {
    Read read{find.columns, path, i};
    each_field(rows[i], read);
  }
  return rows;
}

template <class Row>
std::vector<Row> read_rows(const std::filesystem::path& path) {
  return rows_of<Row>(tables::read_parquet(path).table, path);
}

}  // namespace

tables::Table runs_table(std::span<const RunResult> runs) {
  return table_of<RunResult>(runs, [](const RunResult& run) { return std::span(&run, 1); });
}
tables::Table plan_table(std::span<const RunResult> runs) {
  return table_of<Fact>(runs, [](const RunResult& run) { return std::span(run.facts); });
}
tables::Table stages_table(std::span<const RunResult> runs) {
  return table_of<StageRow>(runs, [](const RunResult& run) { return std::span(run.stages); });
}
tables::Table steps_table(std::span<const RunResult> runs) {
  return table_of<StepRow>(runs, [](const RunResult& run) { return std::span(run.steps); });
}
tables::Table spans_table(std::span<const RunResult> runs) {
  return table_of<SpanRow>(runs, [](const RunResult& run) { return std::span(run.spans); });
}
tables::Table memory_table(std::span<const RunResult> runs) {
  return table_of<MemoryRow>(runs, [](const RunResult& run) { return std::span(run.memory); });
}

tables::Metadata run_metadata(const RunResult& run) {
  return {{"scenario", run.scenario_text},
          {"scenario_hash", run.scenario_hash},
          {"calibration_hash", run.calibration_hash},
          {"seed", std::to_string(run.seed)},
          {"version", std::string(version())}};
}

void write_run(const RunResult& run, const std::filesystem::path& dir) {
  make_directories(dir);
  remove_stale_temporaries(dir);
  const tables::Metadata metadata = run_metadata(run);
  const std::span<const RunResult> runs(&run, 1);
  tables::write_parquet(plan_table(runs), metadata, dir / "plan.parquet");
  tables::write_parquet(stages_table(runs), metadata, dir / "stages.parquet");
  tables::write_parquet(steps_table(runs), metadata, dir / "steps.parquet");
  tables::write_parquet(spans_table(runs), metadata, dir / "spans.parquet");
  tables::write_parquet(memory_table(runs), metadata, dir / "memory.parquet");
  tables::write_parquet(runs_table(runs), metadata,
                        dir / "runs.parquet");  // last: the run is complete
}

std::filesystem::path runs_file(const std::filesystem::path& path) {
  std::error_code error;
  const bool directory = std::filesystem::is_directory(path, error);
  std::filesystem::path file = directory ? path / "runs.parquet" : path;
  if (!std::filesystem::exists(file, error))
    throw UserError(path.string(), "",
                    "expected the directory of a run or a sweep, with a runs.parquet in it");
  return file;
}

RunRows read_runs(const std::filesystem::path& path) {
  auto [table, metadata] = tables::read_parquet(path);
  std::vector<RunResult> runs = rows_of<RunResult>(table, path);
  Find find{table, path};
  const RunResult no_run;
  each_key(no_run, find);
  for (std::size_t i = 0; i < runs.size(); ++i) {
    Read read{find.columns, path, i};
    each_key(runs[i], read);
  }
  return {std::move(runs), std::move(table), std::move(metadata)};
}

RunResult read_run(const std::filesystem::path& dir) {
  const std::filesystem::path path = runs_file(dir);
  RunRows rows = read_runs(path);
  if (rows.runs.size() != 1)
    throw EnvironmentError(
        fmt::format("cannot read {}: it has {} runs, not one", path.string(), rows.runs.size()));
  RunResult run = std::move(rows.runs.front());
  if (const auto it = rows.metadata.find("scenario"); it != rows.metadata.end())
    run.scenario_text = it->second;
  std::error_code error;
  if (std::filesystem::exists(dir / "plan.parquet", error))  // older runs have none
    run.facts = read_rows<Fact>(dir / "plan.parquet");
  run.stages = read_rows<StageRow>(dir / "stages.parquet");
  run.steps = read_rows<StepRow>(dir / "steps.parquet");
  run.spans = read_rows<SpanRow>(dir / "spans.parquet");
  run.memory = read_rows<MemoryRow>(dir / "memory.parquet");
  return run;
}

}  // namespace mllmsim::results
