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
  std::size_t row;
  bool fits;
  std::size_t next = 0;

  template <class T>
  void field(std::string_view, const T& value) {
    std::get<ColumnOf<T>>(table.columns[next++].second).push_back(plain(value));
  }
  template <class T>
  void unknown(std::string_view name, const T&) {
    table.set_null(name, row);
    field(name, T{});
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
    if (text.empty()) return;  // null
    const std::optional<Enum> value = named<Enum>(text);
    if (!value)
      throw UserError(path.string(), std::string(name),
                      fmt::format("expected {}; found \"{}\"", choices<Enum>(), text));
    to = *value;
  }
  template <class T>
  void field(std::string_view name, T& to) {
    const auto& value = std::get<ColumnOf<T>>(*columns[next++])[row];
    to = static_cast<T>(value);
    if constexpr (std::integral<T>)
      if (plain(to) != value)
        throw UserError(path.string(), std::string(name), fmt::format("{} is too large", value));
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
      Append append{table, table.rows(), run.fits};
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

// Ranks are counted with these: none is 0, and all together are the GPUs of one cluster.
void require_sizes(const RunResult& run, const std::filesystem::path& path) {
  constexpr std::int64_t kMostGpus = 1'000'000;
  std::int64_t gpus = 1;
  const auto require = [&](const char* name, int size, std::int64_t most) {
    if (size < 1 || size > most)
      throw UserError(path.string(), name, fmt::format("{} is no size of a run", size));
  };
  require("vpp", run.vpp, kMostGpus);
  for (const auto& [name, size] : {std::pair{"tp", run.tp}, std::pair{"pp", run.pp},
                                   std::pair{"cp", run.cp}, std::pair{"dp", run.dp}}) {
    require(name, size, kMostGpus / gpus);
    gpus *= size;
  }
}

// `events`: of the run that the table must be of. A run that was killed while its files took their
// places, or files that were copied, leave tables of two runs.
template <class Row>
std::vector<Row> read_rows(const std::filesystem::path& path, const std::string& events) {
  const tables::ParquetFile file = tables::read_parquet(path);
  const auto it = file.metadata.find("event_digest");
  if (it != file.metadata.end() && it->second != events)
    throw UserError(path.string(), "",
                    "is of another run than runs.parquet beside it; the command that wrote them "
                    "writes them anew");
  return rows_of<Row>(file.table, path);
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

tables::Table gaps_table(std::span<const RunResult> runs) {
  return table_of<GapRow>(runs, [](const RunResult& run) { return std::span(run.gaps); });
}

tables::Metadata run_metadata(const RunResult& run) {
  return {{"scenario", run.scenario_text},
          {"scenario_hash", run.scenario_hash},
          {"calibration_hash", run.calibration_hash},
          {"data_hash", run.data_hash},
          {"event_digest", run.event_digest},
          {"seed", std::to_string(run.seed)},
          {"version", std::string(version())}};
}

void write_run(const RunResult& run, const std::filesystem::path& dir) {
  make_directories(dir);
  remove_stale_temporaries(dir);
  const std::span<const RunResult> runs(&run, 1);
  const tables::TableFile files[] = {
      {dir / "plan.parquet", plan_table(runs)},     {dir / "stages.parquet", stages_table(runs)},
      {dir / "steps.parquet", steps_table(runs)},   {dir / "spans.parquet", spans_table(runs)},
      {dir / "memory.parquet", memory_table(runs)}, {dir / "gaps.parquet", gaps_table(runs)},
      {dir / "runs.parquet", runs_table(runs)}};
  tables::write_parquet(files, run_metadata(run));  // runs last: the run is complete
}

void add_cost(tables::Table& runs, double price_per_gpu_hour) {
  const auto& days = std::get<std::vector<double>>(*runs.find("gpu_days"));
  std::vector<double> costs;
  for (std::size_t i = 0; i < days.size(); ++i) {
    if (runs.is_null("gpu_days", i)) runs.set_null("cost", i);
    costs.push_back(cost_of(days[i], price_per_gpu_hour));
  }
  runs.columns.emplace_back("cost", std::move(costs));
}

std::string label_of(const std::filesystem::path& runs_file) {
  return std::filesystem::absolute(runs_file).lexically_normal().parent_path().filename();
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
  require_sizes(run, path);
  if (const auto it = rows.metadata.find("scenario"); it != rows.metadata.end())
    run.scenario_text = it->second;
  std::error_code error;
  if (std::filesystem::exists(dir / "plan.parquet", error))  // older runs have none
    run.facts = read_rows<Fact>(dir / "plan.parquet", run.event_digest);
  if (std::filesystem::exists(dir / "gaps.parquet", error))
    run.gaps = read_rows<GapRow>(dir / "gaps.parquet", run.event_digest);
  run.stages = read_rows<StageRow>(dir / "stages.parquet", run.event_digest);
  run.steps = read_rows<StepRow>(dir / "steps.parquet", run.event_digest);
  run.spans = read_rows<SpanRow>(dir / "spans.parquet", run.event_digest);
  run.memory = read_rows<MemoryRow>(dir / "memory.parquet", run.event_digest);
  return run;
}

}  // namespace mllmsim::results
