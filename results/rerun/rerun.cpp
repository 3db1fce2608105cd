#include "results/rerun/rerun.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "results/charts/cells.hpp"
#include "results/run/run_scenario.hpp"
#include "results/run/run_tables.hpp"
#include "results/run/version.hpp"
#include "results/sweep/run_sweep.hpp"
#include "scenarios/files/input_files.hpp"
#include "scenarios/read/scenario.hpp"
#include "scenarios/sweeps/sweep.hpp"
#include "scenarios/tree/merge.hpp"
#include "scenarios/tree/toml_parse.hpp"
#include "sim/base/errors.hpp"
#include "sim/base/text.hpp"

namespace mllmsim::rerun {
namespace {

namespace fs = std::filesystem;
using results::RunResult;

struct TableKind {
  const char* name;
  tables::Table (*of)(std::span<const RunResult>);
};
constexpr std::array<TableKind, 6> kTables = {{{"runs", results::runs_table},
                                               {"plan", results::plan_table},
                                               {"stages", results::stages_table},
                                               {"steps", results::steps_table},
                                               {"spans", results::spans_table},
                                               {"memory", results::memory_table}}};

// One table of the results, as it is on disk.
struct Recorded {
  fs::path path;
  const TableKind* kind;
  tables::ParquetFile file;

  std::string metadata(const char* key) const {
    const auto it = file.metadata.find(key);
    return it == file.metadata.end() ? "" : it->second;
  }
};

[[noreturn]] void wrong(const fs::path& path, const std::string& why) {
  throw UserError(path.string(), "", why);
}

// The kind with the most columns in common: a file may have another name, or be of another version.
const TableKind* kind_of(const tables::Table& table) {
  const TableKind* best = nullptr;
  std::size_t most = 3;  // every table has run, strategy and scenario_hash
  for (const TableKind& kind : kTables) {
    const tables::Table like = kind.of({});
    const auto common = static_cast<std::size_t>(
        std::count_if(table.columns.begin(), table.columns.end(),
                      [&](const auto& column) { return like.find(column.first) != nullptr; }));
    if (common > most) {
      best = &kind;
      most = common;
    }
  }
  return best;
}

Recorded read_recorded(const fs::path& path) {
  Recorded out{path, nullptr, tables::read_parquet(path)};
  out.kind = kind_of(out.file.table);
  for (const char* key : {"run", "strategy", "scenario_hash"}) {
    const tables::Column* column = out.file.table.find(key);
    if (!column || !std::holds_alternative<tables::StringColumn>(*column)) out.kind = nullptr;
  }
  if (!out.kind || out.metadata("scenario").empty())
    wrong(path, "is not a table of a run or a sweep of ours: no scenario in its metadata");
  return out;
}

std::vector<Recorded> read_all(const fs::path& results) {
  std::error_code error;
  if (!fs::is_directory(results, error)) {
    if (!fs::exists(results, error)) wrong(results, "no such file or directory");
    std::vector<Recorded> one;
    one.push_back(read_recorded(results));
    return one;
  }
  std::vector<Recorded> out;
  out.push_back(read_recorded(results::runs_file(results)));
  for (const TableKind& kind : kTables) {
    const fs::path path = results / (std::string(kind.name) + ".parquet");
    if (kind.name != std::string_view("runs") && fs::exists(path, error))
      out.push_back(read_recorded(path));
  }
  return out;
}

// The rows of `table` for which keep(row) holds, in columns that `like` has if it is given.
template <class Keep>
tables::Table chosen(const tables::Table& table, const tables::Table* like, Keep keep) {
  tables::Table out;
  for (const auto& [name, column] : table.columns) {
    if (like && !like->find(name)) continue;
    std::visit(
        [&, &name = name](const auto& values) {
          std::remove_cvref_t<decltype(values)> kept;
          for (std::size_t i = 0; i < values.size(); ++i)
            if (keep(i)) kept.push_back(values[i]);
          out.columns.emplace_back(name, std::move(kept));
        },
        column);
  }
  return out;
}

const std::vector<std::int64_t>* points_of(const tables::Table& table) {
  const tables::Column* column = table.find("point");
  return column ? std::get_if<std::vector<std::int64_t>>(column) : nullptr;
}

std::int64_t chosen_point(const Recorded& recorded, const Choice& choice) {
  const tables::Table& table = recorded.file.table;
  const std::vector<std::int64_t>& points = *points_of(table);
  for (const auto& [key, value] : choice.where)
    if (!table.find(key))
      throw UserError("command line", "--where",
                      fmt::format("{} has no column {}", recorded.path.string(), key));
  std::vector<std::int64_t> found;
  for (std::size_t i = 0; i < points.size(); ++i)
    if (points[i] == choice.point.value_or(points[i]) &&
        std::all_of(choice.where.begin(), choice.where.end(), [&](const auto& w) {
          return charts::word(*table.find(w.first), i) == w.second;
        }))
      found.push_back(points[i]);
  found.erase(std::unique(found.begin(), found.end()), found.end());
  if (found.size() != 1)
    wrong(recorded.path, fmt::format("{} points of the sweep are chosen; choose one with --point N "
                                     "or --where KEY=VALUE",
                                     found.size()));
  return found.front();
}

class Again {
 public:
  Again(std::vector<Recorded> recorded, const fs::path& from)
      : recorded_(std::move(recorded)), from_(from) {}

  Rerun run(const Choice& choice) {
    Recorded& first = recorded_.front();
    if (points_of(first.file.table)) {
      sweep_row(chosen_point(first, choice));
    } else {
      if (choice.point || !choice.where.empty())
        wrong(first.path, "is one run: there is no row to choose");
      whole_run();
    }
    out_.digest = run_.event_digest;
    note_versions();
    return std::move(out_);
  }

 private:
  void whole_run() {
    const Recorded& first = recorded_.front();
    name_run(first.file.table);
    scenarios::Node tree = scenarios::parse_toml(first.metadata("scenario"), file().string());
    run_ = results::run_scenario(scenarios::read_scenario_tree(std::move(tree), file(), &files_),
                                 files_);
    note("calibration", first.metadata("calibration_hash"), run_.calibration_hash);
    note("data", first.metadata("data_hash"), run_.data_hash);
    for (const Recorded& r : recorded_) {
      compare(r, r.file.table);
      note("events", r.metadata("event_digest"), run_.event_digest);
    }
  }

  void sweep_row(std::int64_t point) {
    const Recorded& first = recorded_.front();
    for (Recorded& r : recorded_) {
      const auto* points = points_of(r.file.table);
      if (!points) wrong(r.path, "is not the result of a sweep");
      const tables::Table like = r.kind->of({});
      r.file.table =
          chosen(r.file.table, &like, [&](std::size_t i) { return (*points)[i] == point; });
    }
    name_run(first.file.table);
    scenarios::Node tree = scenarios::parse_toml(first.metadata("scenario"), file().string());
    const scenarios::Sweep sweep = scenarios::read_sweep(tree, {}, std::nullopt);
    if (point < 0 || static_cast<std::size_t>(point) >= sweep.points())
      wrong(first.path, fmt::format("point {} is not one of its sweep's", point));
    try {
      scenarios::Problems problems;
      scenarios::apply_overrides(tree, sweep.overrides(static_cast<std::size_t>(point)), problems);
      problems.throw_if_any();
      results::Simulators simulators;
      run_ = sweep::simulated_point(scenarios::read_scenario_tree(std::move(tree), file(), &files_),
                                    files_, simulators);
    } catch (const UserError& e) {
      if (scenario_was_read(first)) throw;
      unreadable(e);
      return;
    }
    note_inputs(first.metadata("inputs"));
    for (const Recorded& r : recorded_) compare(r, r.file.table);
  }

  // A point whose scenario is wrong is a row with its reason and nothing else to compare.
  void unreadable(const UserError& error) {
    run_.fits = false;
    run_.reason = sweep::reason_of(error);
    for (const Recorded& r : recorded_)
      if (r.file.table.find("reason")) {
        const auto reason = [](const tables::Table& table) {
          tables::Table out;
          out.columns.emplace_back("reason", *table.find("reason"));
          return out;
        };
        add(r, reason(r.file.table), reason(r.kind->of({&run_, 1})));
      }
  }

  static bool scenario_was_read(const Recorded& recorded) {
    return !charts::word(*recorded.file.table.find("scenario_hash"), 0).empty();
  }

  void name_run(const tables::Table& table) {
    if (table.rows() == 0) wrong(recorded_.front().path, "has no rows");
    out_.run = charts::word(*table.find("run"), 0);
    out_.strategy = charts::word(*table.find("strategy"), 0);
    for (std::size_t i = 1; i < table.rows(); ++i)
      if (charts::word(*table.find("scenario_hash"), i) !=
          charts::word(*table.find("scenario_hash"), 0))
        wrong(recorded_.front().path, "has several runs, and metadata of one at most");
  }

  // Where the scenario would be if it were a file: messages name it, paths start from there.
  fs::path file() const { return from_ / (out_.run + ".toml"); }

  void compare(const Recorded& recorded, const tables::Table& before) {
    add(recorded, before, recorded.kind->of({&run_, 1}));
  }

  void add(const Recorded& recorded, const tables::Table& before, const tables::Table& now) {
    ++out_.tables;
    out_.values += before.rows() * before.columns.size();
    const std::vector<Difference> found = differences(recorded.kind->name, before, now);
    out_.differences.insert(out_.differences.end(), found.begin(), found.end());
  }

  void note(const std::string& what, const std::string& before, const std::string& now) {
    if (before == now) return;
    const std::string text = fmt::format("{}: {} then, {} now", what, before.empty() ? "-" : before,
                                         now.empty() ? "-" : now);
    if (std::find(out_.changed.begin(), out_.changed.end(), text) == out_.changed.end())
      out_.changed.push_back(text);
  }

  // Lines "hash name", as run_sweep writes them.
  void note_inputs(const std::string& inputs) {
    const auto now = files_.hashes();
    for (const std::string_view line : split(inputs, '\n')) {
      const std::size_t blank = line.find(' ');
      if (blank == std::string_view::npos) continue;
      const auto it = now.find(std::string(line.substr(blank + 1)));
      if (it != now.end()) note(it->first, std::string(line.substr(0, blank)), it->second);
    }
  }

  void note_versions() {
    for (const Recorded& r : recorded_)
      if (r.metadata("version") != results::version())
        note("mllmsim", r.metadata("version"), std::string(results::version()));
  }

  std::vector<Recorded> recorded_;
  fs::path from_;
  scenarios::InputFiles files_;
  RunResult run_;
  Rerun out_;
};

}  // namespace

Rerun rerun(const fs::path& results, const Choice& choice, const fs::path& from) {
  return Again(read_all(results), from).run(choice);
}

}  // namespace mllmsim::rerun
