#include "results/text/json.hpp"

#include <boost/json.hpp>

#include "results/run/run_fields.hpp"
#include "sim/base/json_writer.hpp"

namespace mllmsim::results {
namespace {

namespace json = boost::json;

struct ToObject {
  json::object& object;
  bool fits;

  template <class T>
  void field(std::string_view name, const T& value) {
    object[name] = plain(value);
  }
  template <class T>
  void unknown(std::string_view name, const T&) {
    object[name] = nullptr;
  }
  template <class T>
  void derived(std::string_view name, const T& value) {
    field(name, value);
  }
};

template <class Row>
json::array to_array(const std::vector<Row>& rows, bool fits) {
  json::array array;
  for (const Row& row : rows) {
    json::object object;
    ToObject visit{object, fits};
    each_field(row, visit);
    array.push_back(std::move(object));
  }
  return array;
}

json::object to_object(const RunResult& run) {
  json::object object;
  ToObject visit{object, run.fits};
  each_key(run, visit);
  each_field(run, visit);
  object["plan"] = to_array(run.facts, run.fits);
  object["stages"] = to_array(run.stages, run.fits);
  object["steps"] = to_array(run.steps, run.fits);
  if (!run.would_fit.empty()) {
    json::array& rows = object["would_fit"].emplace_array();
    for (const FitRow& r : run.would_fit)
      rows.push_back({{"change", r.change},
                      {"iteration_s", r.iteration.value},
                      {"gpu_days", r.gpu_days},
                      {"peak_memory_bytes", r.peak_memory.value}});
  }
  return object;
}

}  // namespace

std::string to_json(const tables::Table& table, const std::string& name) {
  json::array rows(table.rows());
  for (json::value& row : rows) row.emplace_object();
  for (const auto& [key, column] : table.columns)
    std::visit(
        [&, &key = key](const auto& values) {
          for (std::size_t i = 0; i < rows.size(); ++i) {
            json::value& cell = rows[i].as_object()[key];
            if (!table.is_null(key, i)) cell = plain(values[i]);
          }
        },
        column);
  return pretty_json(json::object{{name, std::move(rows)}});
}

std::string to_json(std::span<const RunResult> runs, std::optional<double> price_per_gpu_hour) {
  json::array array;
  for (const RunResult& run : runs) {
    json::object object = to_object(run);
    if (price_per_gpu_hour && run.fits) object["cost"] = cost(run, *price_per_gpu_hour);
    array.push_back(std::move(object));
  }
  return pretty_json(json::object{{"runs", std::move(array)}});
}

}  // namespace mllmsim::results
