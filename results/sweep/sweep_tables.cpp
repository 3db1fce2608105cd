#include "results/sweep/sweep_tables.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "results/run/run_tables.hpp"
#include "sim/base/files.hpp"

namespace mllmsim::sweep {
namespace {

constexpr std::ptrdiff_t kKeyColumns = 3;  // run, strategy, scenario_hash

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
  return fill(tables::StringColumn{}, [](const scenarios::Node& n) {
    return n.is<std::string>() ? n.as<std::string>() : scenarios::to_inline_toml(n);
  });
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
  for (std::size_t k = 0; k < keys.size(); ++k)
    added.emplace_back(keys[k], column_of(values[k], possible[k]));
  auto& runs = out.runs.columns;
  runs.insert(runs.begin() + kKeyColumns, std::make_move_iterator(added.begin()),
              std::make_move_iterator(added.end()));
  auto& stages = out.stages.columns;
  stages.insert(stages.begin() + kKeyColumns, {"point", std::move(stage_points)});
  return out;
}

void write_sweep(const SweepTables& tables, const std::filesystem::path& directory) {
  make_directories(directory);
  tables::write_parquet(tables.stages, tables.metadata, directory / "stages.parquet");
  tables::write_parquet(tables.runs, tables.metadata, directory / "runs.parquet");
}

}  // namespace mllmsim::sweep
