#include "results/report/sweep_page.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <boost/json.hpp>
#include <cmath>
#include <filesystem>

#include "results/charts/cells.hpp"
#include "results/charts/span_look.hpp"
#include "results/charts/table_charts.hpp"
#include "results/report/html.hpp"
#include "results/report/report_assets.hpp"
#include "results/run/run_tables.hpp"
#include "results/text/figures.hpp"
#include "results/text/words.hpp"
#include "sim/base/base64.hpp"

namespace mllmsim::report {
namespace {

namespace json = boost::json;

// What the page shows of a run besides the keys that vary.
constexpr std::array kFigures{"gpus",
                              "tp",
                              "pp",
                              "vpp",
                              "cp",
                              "dp",
                              "micro_batch_size",
                              "iteration_s",
                              "gpu_days",
                              "days",
                              "samples_per_s",
                              "mfu",
                              "hfu",
                              "bubble_share",
                              "tokens_per_s_per_gpu",
                              "peak_memory_bytes",
                              "gpu_memory_bytes"};

std::string text_of(const tables::Metadata& metadata, const char* key) {
  const auto at = metadata.find(key);
  return at == metadata.end() ? "" : at->second;
}

// Six digits are more than a reader sees, and keep a page of many points small.
json::value value_of(const tables::Column& column, std::size_t row) {
  if (const auto* v = std::get_if<std::vector<std::int64_t>>(&column)) return (*v)[row];
  if (const auto* v = std::get_if<std::vector<bool>>(&column)) return bool{(*v)[row]};
  if (const auto v = charts::number(column, row)) {
    if (!std::isfinite(*v)) return nullptr;
    return std::stod(fmt::format("{:.6g}", *v));
  }
  return json::string(charts::word(column, row));
}

json::object column_data(const tables::Table& runs, const std::string& name) {
  const tables::Column& column = charts::column_of(runs, name, "PATH");
  json::array values;
  for (std::size_t i = 0; i < runs.rows(); ++i) values.push_back(value_of(column, i));
  return {{"words", results::words_of_column(name)}, {"values", std::move(values)}};
}

struct Sweep {
  const tables::Table& runs;
  std::vector<std::string> keys;  // that vary, with strategies

  bool planned(std::size_t row) const {
    return *charts::number(*runs.find("simulated_steps"), row) > 0;
  }
  bool fits(std::size_t row) const {
    return *charts::number(*runs.find("fits"), row) != 0 && planned(row);
  }
  double number(const char* column, std::size_t row) const {
    return charts::number(*runs.find(column), row).value_or(NAN);
  }
  // "omnibal, nodes 4"
  std::string point(std::size_t row) const {
    std::string out;
    for (const std::string& key : keys) {
      const std::string words = results::words_of_column(key);
      out += (out.empty() ? "" : ", ") +
             (key == "strategy" ? "" : words.substr(0, words.find(" (")) + " ") +
             charts::word(*runs.find(key), row);
    }
    return out;
  }
};

// Points of one work are compared; what is best of each.
std::string answers(const Sweep& sweep) {
  std::vector<std::pair<std::string, std::vector<std::size_t>>> works;
  std::size_t fit = 0, misfits = 0, unplanned = 0;
  for (std::size_t i = 0; i < sweep.runs.rows(); ++i) {
    ++(sweep.fits(i) ? fit : sweep.planned(i) ? misfits : unplanned);
    if (!sweep.fits(i)) continue;
    const std::string work = charts::word(*sweep.runs.find("work"), i);
    auto at = std::ranges::find_if(works, [&](const auto& w) { return w.first == work; });
    if (at == works.end()) at = works.insert(works.end(), {work, {}});
    at->second.push_back(i);
  }
  std::string out = "<p>" + results::points_text(fit, misfits, unplanned) + ".</p>\n";
  const auto cost = [&](std::size_t row) {
    return sweep.runs.find("cost") ? ", cost " + results::money(sweep.number("cost", row)) : "";
  };
  constexpr std::size_t kMost = 5;
  for (std::size_t w = 0; w < std::min(kMost, works.size()); ++w) {
    const auto least = [&](const char* column) {
      return *std::ranges::min_element(works[w].second, {},
                                       [&](std::size_t i) { return sweep.number(column, i); });
    };
    const std::size_t cheap = least("gpu_days"), quick = least("days");
    out += fmt::format(
        "<p class=\"answer\">{}: <strong>{}</strong> needs the fewest GPU-days, {} ({} on {:.0f} "
        "GPUs{}); <strong>{}</strong> takes the least time, {} on {:.0f} GPUs ({} "
        "GPU-days{}).</p>\n",
        html(charts::word(*sweep.runs.find("model"), cheap)), html(sweep.point(cheap)),
        results::figure(sweep.number("gpu_days", cheap)),
        results::duration(sweep.number("days", cheap)), sweep.number("gpus", cheap), cost(cheap),
        html(sweep.point(quick)), results::duration(sweep.number("days", quick)),
        sweep.number("gpus", quick), results::figure(sweep.number("gpu_days", quick)), cost(quick));
  }
  if (works.size() > kMost)
    out += fmt::format("<p>{} more models or data sets are below.</p>\n", works.size() - kMost);
  if (works.size() > 1)
    out +=
        "<p class=\"note\">Points differ in model, data or samples: only those that agree in "
        "them can be compared.</p>\n";
  return out;
}

std::string reproduce(const tables::Metadata& metadata, const std::string& name,
                      const std::string& directory) {
  const std::string scenario = text_of(metadata, "scenario"), file = html(name + ".toml");
  std::string out = "<section id=\"reproduce\"><h2>How to reproduce</h2>\n";
  if (!scenario.empty())
    out += fmt::format(
        "<pre>mllmsim sweep {0}</pre>\n"
        "<p><a download=\"{0}\" href=\"data:text/plain;charset=utf-8;base64,{1}\">{0}</a></p>\n"
        "<details><summary>Show it</summary><pre>{2}</pre></details>\n",
        file, base64(scenario), html(scenario));
  return out +
         fmt::format("<dl><dt>version</dt><dd>{}</dd><dt>read from</dt><dd>{}</dd></dl>\n",
                     html(text_of(metadata, "version")), html(directory)) +
         "</section>\n";
}

json::object data_of(const Sweep& sweep) {
  json::object columns;
  json::array keys, figures, causes;
  const auto add = [&](const std::string& name, json::array& to) {
    if (!columns.contains(name)) columns[name] = column_data(sweep.runs, name);
    to.push_back(json::string(name));
  };
  for (const std::string& key : sweep.keys) add(key, keys);
  for (const char* name : kFigures) add(name, figures);
  if (sweep.runs.find("cost")) add("cost", figures);
  for (const char* name : {"run", "model", "fits", "reason", "simulated_steps"})
    columns[name] = column_data(sweep.runs, name);
  for (std::size_t k = 0; k < kBubbleKinds; ++k) {
    const auto kind = static_cast<BubbleKind>(k);
    const std::string name = "bubble_share_" + std::string(name_of(kind));
    columns[name] = column_data(sweep.runs, name);
    causes.push_back(
        {{"column", name},
         {"words", results::words(kind)},
         {"colour", fmt::format("#{:06x}", charts::span_looks()[charts::look_of(kind)].alone)}});
  }
  return {{"points", sweep.runs.rows()},
          {"keys", std::move(keys)},
          {"figures", std::move(figures)},
          {"causes", std::move(causes)},
          {"columns", std::move(columns)}};
}

constexpr const char* kSections =
    "<section id=\"choose\"><h2>Points</h2>\n"
    "<div id=\"filters\" class=\"tools\"></div><p id=\"count\" role=\"status\"></p></section>\n"
    "<section id=\"heat-map\"><h2>Heat map</h2>\n<div class=\"tools\">"
    "<label>Figure <select id=\"heat-figure\"></select></label>"
    "<label>across <select id=\"heat-x\"></select></label>"
    "<label>down <select id=\"heat-y\"></select></label></div>\n"
    "<p class=\"soft\">Each cell is the best of its points; a click shows it.</p>\n"
    "<div id=\"heat\" class=\"wide\"></div></section>\n"
    "<section id=\"frontier-section\"><h2>Frontier</h2>\n<p class=\"soft\">Points that no other "
    "beats in both GPU-days and time are joined. A click shows a point.</p>\n"
    "<div id=\"frontier\"></div><ul id=\"legend\" aria-label=\"Legend\"></ul></section>\n"
    "<section id=\"table-section\"><h2>Table</h2>\n<p class=\"soft\">A click on a heading sorts, "
    "on "
    "a row shows the run.</p>\n<div class=\"wide\"><table id=\"table\"><thead></thead>"
    "<tbody></tbody></table></div><button id=\"more\" type=\"button\" hidden></button></section>\n"
    "<section id=\"chosen\" hidden aria-live=\"polite\"></section>\n";

}  // namespace

bool is_sweep(const tables::ParquetFile& runs) { return runs.table.find("point") != nullptr; }

std::string sweep_to_html(const tables::ParquetFile& file, const std::string& directory,
                          std::optional<double> price) {
  tables::Table runs = file.table;
  for (const char* name : {"strategy", "fits", "simulated_steps", "work", "model", "run"})
    charts::column_of(runs, name, "PATH");
  Sweep sweep{runs, {}};
  const tables::Column& strategy = *runs.find("strategy");
  for (std::size_t i = 1; i < runs.rows() && sweep.keys.empty(); ++i)
    if (charts::word(strategy, i) != charts::word(strategy, 0)) sweep.keys = {"strategy"};
  for (std::string& key : charts::swept_keys(runs)) sweep.keys.push_back(std::move(key));
  const std::string name = runs.rows() > 0 ? charts::word(*runs.find("run"), 0) : "sweep";
  const std::string model = charts::model_of(runs), title = model.empty() ? name : model;
  std::string over;
  for (const std::string& key : sweep.keys) {
    const std::string words = results::words_of_column(key);
    over += (over.empty() ? " over " : ", ") + words.substr(0, words.find(" ("));
  }
  if (price) results::add_cost(runs, *price);
  const json::object data = data_of(sweep);  // before anything: it finds what is missing
  return page_start(fmt::format("{}: a sweep of {} points{}", title, runs.rows(), over),
                    "<li><a href=\"#answer\">Answer</a></li>"
                    "<li><a href=\"#heat-map\">Heat map</a></li>"
                    "<li><a href=\"#frontier-section\">Frontier</a></li>"
                    "<li><a href=\"#table-section\">Table</a></li>"
                    "<li><a href=\"#reproduce\">How to reproduce</a></li>") +
         "<section id=\"answer\"><h2>Answer</h2>\n" + answers(sweep) + "</section>\n" + kSections +
         reproduce(file.metadata, name, directory) + page_end(data, kSweepScript);
}

}  // namespace mllmsim::report
