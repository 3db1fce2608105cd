#include "results/sweep/sweep_tables.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>

#include "results/run/run_tables.hpp"
#include "scenarios/files/portable.hpp"
#include "sim/base/files.hpp"

namespace mllmsim::sweep {
namespace {

constexpr std::ptrdiff_t kKeyColumns = 3;  // run, strategy, scenario_hash
constexpr std::array<std::string_view, 4> kSaidByRuns = {"strategy", "model", "cluster", "seed"};
constexpr const char* kApart = "scenario.";  // before a key whose name a column of runs has

template <class T>
bool all_are(const std::vector<const scenarios::Node*>& values) {
  return std::all_of(values.begin(), values.end(),
                     [](const scenarios::Node* n) { return n->is<T>(); });
}

double number(const scenarios::Node& node) {
  return node.is<double>() ? node.as<double>() : static_cast<double>(node.as<std::int64_t>());
}

bool all_numbers(const std::vector<const scenarios::Node*>& values) {
  return std::all_of(values.begin(), values.end(), [](const scenarios::Node* n) {
    return n->is<double>() || n->is<std::int64_t>();
  });
}

std::string text_of(const scenarios::Node& node) {
  return node.is<std::string>() ? node.as<std::string>() : scenarios::to_inline_toml(node);
}

// Two files of one name in two directories would not.
bool stay_apart_as_portable(const std::vector<const scenarios::Node*>& values) {
  std::set<std::string> written, named;
  for (const scenarios::Node* n : values) {
    written.insert(text_of(*n));
    named.insert(scenarios::portable_name(text_of(*n)));
  }
  return written.size() == named.size();
}

// `possible`: all values that the key takes in the sweep, so that every shard has the same type.
tables::Column column_of(const std::vector<const scenarios::Node*>& values,
                         const std::vector<const scenarios::Node*>& possible) {
  const auto fill = [&](auto column, auto convert) -> tables::Column {
    for (const scenarios::Node* n : values) column.push_back(convert(*n));
    return column;
  };
  if (all_are<std::int64_t>(possible))
    return fill(std::vector<std::int64_t>{},
                [](const scenarios::Node& n) { return n.as<std::int64_t>(); });
  if (all_numbers(possible)) return fill(std::vector<double>{}, number);
  if (all_are<bool>(possible))
    return fill(std::vector<bool>{}, [](const scenarios::Node& n) { return n.as<bool>(); });
  const bool portable = stay_apart_as_portable(possible);
  return fill(tables::StringColumn{}, [&](const scenarios::Node& n) {
    return portable ? scenarios::portable_name(text_of(n)) : text_of(n);
  });
}

bool is_plain(const scenarios::Node* node) {
  if (!node->is<std::string>()) return node->is<std::int64_t>();
  const auto& text = node->as<std::string>();
  return text.find('/') == std::string::npos && !text.ends_with(".toml");
}

// Whether the run's own column of this name says what the key does. Asked of all values that the
// key takes, so that every shard has the same columns.
bool is_said(const std::string& key, const tables::Column& of_runs, const tables::Column& varied,
             const std::vector<const scenarios::Node*>& possible) {
  return std::find(kSaidByRuns.begin(), kSaidByRuns.end(), key) != kSaidByRuns.end() &&
         of_runs.index() == varied.index() &&
         std::all_of(possible.begin(), possible.end(), is_plain);
}

std::vector<std::vector<const scenarios::Node*>> possible_values(const scenarios::Sweep& sweep) {
  std::vector<std::vector<const scenarios::Node*>> out;
  for (const scenarios::SweepAxis& axis : sweep.axes)
    for (std::size_t k = 0; k < axis.keys.size(); ++k) {
      auto& values = out.emplace_back();
      for (const auto& choice : axis.values) values.push_back(&choice[k]);
    }
  return out;
}

}  // namespace

SweepTables tables_of(const scenarios::Sweep& sweep, const SweepResult& result) {
  SweepTables out{results::runs_table(result.runs), results::stages_table(result.runs),
                  result.metadata};
  std::vector<std::int64_t> points, stage_points;
  const std::vector<std::string> keys = sweep.keys();
  std::vector<std::vector<const scenarios::Node*>> values(keys.size());
  for (std::size_t i = 0; i < result.points.size(); ++i) {
    points.push_back(static_cast<std::int64_t>(result.points[i]));
    stage_points.insert(stage_points.end(), result.runs[i].stages.size(), points.back());
    const auto of_point = sweep.values(result.points[i]);
    for (std::size_t k = 0; k < keys.size(); ++k) values[k].push_back(of_point[k]);
  }
  const auto possible = possible_values(sweep);
  std::vector<std::pair<std::string, tables::Column>> added{{"point", std::move(points)}};
  auto& runs = out.runs.columns;
  for (std::size_t k = 0; k < keys.size(); ++k) {
    tables::Column varied = column_of(values[k], possible[k]);
    const auto own = std::find_if(runs.begin(), runs.end(),
                                  [&](const auto& column) { return column.first == keys[k]; });
    if (own == runs.end())
      added.emplace_back(keys[k], std::move(varied));
    else if (is_said(keys[k], own->second, varied, possible[k])) {
      own->second = std::move(varied);
      out.runs.nulls.erase(keys[k]);
    } else
      added.emplace_back(kApart + keys[k], std::move(varied));
  }
  runs.insert(runs.begin() + kKeyColumns, std::make_move_iterator(added.begin()),
              std::make_move_iterator(added.end()));
  auto& stages = out.stages.columns;
  stages.insert(stages.begin() + kKeyColumns, {"point", std::move(stage_points)});
  return out;
}

std::string varied_column(const tables::Table& runs, const std::string& key) {
  const std::string apart = kApart + key;
  return runs.find(apart) ? apart : key;
}

void write_sweep(const SweepTables& tables, const std::filesystem::path& directory) {
  make_directories(directory);
  remove_stale_temporaries(directory);
  const tables::TableFile files[] = {{directory / "stages.parquet", tables.stages},
                                     {directory / "runs.parquet", tables.runs}};
  tables::write_parquet(files, tables.metadata);
}

}  // namespace mllmsim::sweep
