// mllmsim plot KIND PATH...: pictures of what runs, sweeps and other commands left.
#include <fmt/format.h>

#include <array>
#include <filesystem>

#include "results/charts/table_charts.hpp"
#include "results/charts/timeline_chart.hpp"
#include "results/cli/calibration_plot.hpp"
#include "results/cli/command.hpp"
#include "results/cli/streams.hpp"
#include "results/run/run_tables.hpp"
#include "results/trace/measured_trace.hpp"
#include "scenarios/tree/merge.hpp"
#include "sim/base/errors.hpp"
#include "sim/base/files.hpp"

namespace po = boost::program_options;
namespace fs = std::filesystem;

namespace mllmsim::cli {
namespace {

constexpr const char* kPlotUsage =
    "usage: mllmsim plot KIND PATH... [options]\n\n"
    "  timeline RUN...     device lanes of a step: passes, communication, bubbles; a\n"
    "                      TRACE.json behind a RUN is a step of it that was really trained\n"
    "  bubbles RUN...      idle time by stage and cause\n"
    "  memory RUN...       memory of a GPU of each stage over a step, stacked, with what it\n"
    "                      has\n"
    "  sweep SWEEP         a column over a swept key, a line per strategy; a panel per\n"
    "                      value of what else varies if lines are many\n"
    "  speedup SWEEP|RUN.. GPU-days of a baseline over those of each strategy\n"
    "  packing PACKS       tiles and tokens per micro-batch before and after `mllmsim pack\n"
    "                      --out PACKS`\n"
    "  validation FILE     predicted against published figures, a panel per kind\n"
    "                      (validation.parquet)\n"
    "  calibration NAME    predicted over measured kernel times, of a shipped calibration\n"
    "                      or a file; needs --raw\n\n"
    "RUN is a directory that `mllmsim run` left; several are drawn one above the other on\n"
    "the same axis.\n";

using Paths = std::vector<std::string>;

bool is_folder(const fs::path& path) {
  std::error_code error;  // a name too long or a loop of links is none
  return fs::is_directory(path, error);
}

std::vector<results::RunResult> read_runs(const Paths& paths) {
  std::vector<results::RunResult> runs;
  for (const std::string& path : paths) {
    if (!results::is_trace(path)) {
      runs.push_back(results::read_run(path));
    } else if (runs.empty()) {
      throw UserError("command line", path, "a trace comes behind the RUN whose step it shows");
    } else {
      runs.push_back(results::read_trace({path}, runs.back()));
    }
  }
  return runs;
}

charts::Choice choice_of(const po::variables_map& values) {
  charts::Choice choice;
  if (values.count("step")) choice.step = values["step"].as<std::int64_t>();
  if (values.count("ranks")) choice.ranks = charts::parse_ranks(values["ranks"].as<std::string>());
  if (values.count("zoom")) choice.zoom = charts::parse_zoom(values["zoom"].as<std::string>());
  return choice;
}

// runs.parquet of each directory, one below the other; columns that not all have are left out.
tables::Table read_rows(const Paths& paths) {
  tables::Table all;
  for (const std::string& path : paths) {
    const tables::Table one = tables::read_parquet(results::runs_file(path)).table;
    if (all.columns.empty()) {
      all = one;
      continue;
    }
    std::erase_if(all.columns, [&](const auto& c) {
      const tables::Column* other = one.find(c.first);
      return !other || other->index() != c.second.index();
    });
    const std::size_t rows = all.rows();
    for (auto& [name, column] : all.columns) {
      for (std::size_t i = 0; i < one.rows(); ++i)
        if (one.is_null(name, i)) all.set_null(name, rows + i);
      std::visit(
          [&, &key = name](auto& to) {
            const auto& from = std::get<std::remove_reference_t<decltype(to)>>(*one.find(key));
            for (std::size_t i = 0; i < from.size(); ++i) to.push_back(from[i]);
          },
          column);
    }
  }
  return all;
}

// The column that a word means: itself, or the key that it is short for.
std::string column_meant(const tables::Table& runs, const std::string& word) {
  const std::string key = scenarios::in_full(word);
  if (runs.find(key)) return key;
  const std::string last = key.substr(key.rfind('.') + 1);
  return !runs.find(word) && runs.find(last) ? last : word;
}

charts::SweepPicture sweep_picture(const po::variables_map& values, const tables::Table& runs) {
  charts::SweepPicture out;
  if (values.count("x")) out.x = column_meant(runs, values["x"].as<std::string>());
  if (values.count("y")) out.y = values["y"].as<std::string>();
  if (values.count("baseline")) out.baseline = values["baseline"].as<std::string>();
  if (!values.count("where")) return out;
  for (const std::string& w : values["where"].as<Paths>()) {
    const auto equals = w.find('=');
    if (equals == std::string::npos)
      throw UserError("command line", "--where", "expected KEY=VALUE, found " + w);
    out.where[column_meant(runs, w.substr(0, equals))] = w.substr(equals + 1);
  }
  return out;
}

fs::path existing_file(const fs::path& path) {
  std::error_code error;
  if (!fs::is_regular_file(path, error))
    throw UserError(path.string(), "", is_folder(path) ? "is a directory" : "no such file");
  return path;
}

// validation.parquet, or the directory it is in.
tables::Table validation_rows(const fs::path& path) {
  return tables::read_parquet(existing_file(is_folder(path) ? path / "validation.parquet" : path))
      .table;
}

struct Kind {
  const char* name;
  bool several;  // takes more than one PATH
  plot::Chart (*draw)(const Paths&, const po::variables_map&);
};

constexpr std::array kKinds{
    Kind{"timeline", true,
         [](const Paths& p, const po::variables_map& v) {
           return charts::timeline_chart(read_runs(p), choice_of(v));
         }},
    Kind{"bubbles", true,
         [](const Paths& p, const po::variables_map&) {
           return charts::bubbles_chart(read_runs(p));
         }},
    Kind{"memory", true,
         [](const Paths& p, const po::variables_map& v) {
           return charts::memory_chart(read_runs(p), choice_of(v));
         }},
    Kind{"sweep", true,
         [](const Paths& p, const po::variables_map& v) {
           const tables::Table rows = read_rows(p);
           return charts::sweep_chart(rows, sweep_picture(v, rows));
         }},
    Kind{"speedup", true,
         [](const Paths& p, const po::variables_map& v) {
           const tables::Table rows = read_rows(p);
           charts::SweepPicture picture = sweep_picture(v, rows);
           if (rows.rows() == p.size())
             for (const std::string& run : p)
               picture.labels.push_back(results::label_of(results::runs_file(run)));
           return charts::speedup_chart(rows, picture);
         }},
    Kind{"packing", false,
         [](const Paths& p, const po::variables_map&) {
           return charts::packing_chart(tables::read_parquet(existing_file(p.front())));
         }},
    Kind{"validation", false,
         [](const Paths& p, const po::variables_map&) {
           return charts::validation_chart(validation_rows(p.front()));
         }},
    Kind{"calibration", false,
         [](const Paths& p, const po::variables_map& v) { return draw_calibration(p.front(), v); }},
};

const Kind& kind_of(const std::string& name) {
  std::string all;
  for (const Kind& k : kKinds) {
    if (name == k.name) return k;
    all += (all.empty() ? "" : ", ") + std::string(k.name);
  }
  throw UserError("command line", name, "expected one of " + all);
}

fs::path default_out(const std::string& kind, const fs::path& path) {
  return (is_folder(path) ? path : path.parent_path()) / (kind + ".svg");
}

// Without gnuplot there is no picture, but what it would show is still worth having.
void draw(const plot::Chart& chart, const fs::path& out, const po::variables_map& values) {
  const auto write_data = [&](const fs::path& file) {
    write_file_atomically(file, plot::to_csv(chart));
    say("wrote " + file.string());
  };
  if (values.count("data")) write_data(values["data"].as<std::string>());
  try {
    plot::save(chart, out);
  } catch (const EnvironmentError&) {
    if (!values.count("data")) write_data(fs::path(out).replace_extension(".csv"));
    throw;
  }
  say("wrote " + out.string());
}

}  // namespace

int plot_command(const Arguments& arguments) {
  po::options_description options("options");
  options.add_options()("out,o", po::value<std::string>(),
                        ".svg, .png or .pdf file (default: KIND.svg beside the first PATH)")(
      "data", po::value<std::string>(), "also write what is drawn to this .csv file")(
      "step", po::value<std::int64_t>(), "timeline, memory: one of the kept steps")(
      "ranks", po::value<std::string>(), "timeline, memory: global ranks, such as 0,3 or 0-7")(
      "zoom", po::value<std::string>(), "timeline, memory: from:to in seconds, such as 0.5:1.2")(
      "x", po::value<std::string>(),
      "sweep, speedup: the key to draw over (default: the first left by --where)")(
      "y", po::value<std::string>(), "sweep: any column of runs (default gpu_days)")(
      "where", po::value<Paths>()->composing(), "sweep, speedup: only rows with KEY=VALUE")(
      "baseline", po::value<std::string>(), "speedup: the strategy to compare with");
  add_calibration_options(options);
  po::variables_map values;
  Arguments words;
  if (!parse(arguments, kPlotUsage, options, values, words)) return 0;
  if (words.empty()) throw UserError("command line", "", "plot needs a KIND; --help lists them");
  const Kind& kind = kind_of(words.front());
  const Paths paths(words.begin() + 1, words.end());
  if (paths.empty())
    throw UserError("command line", "", fmt::format("plot {} needs a PATH", kind.name));
  if (!kind.several && paths.size() > 1)
    throw UserError("command line", paths[1], fmt::format("plot {} takes one PATH", kind.name));
  const fs::path out = values.count("out") ? fs::path(values["out"].as<std::string>())
                                           : default_out(kind.name, paths.front());
  const fs::path folder = out.parent_path();
  if (!folder.empty() && !fs::is_directory(folder))
    throw UserError("command line", "--out",
                    fmt::format("there is no folder {} to write {} into", folder.string(),
                                out.filename().string()));
  draw(kind.draw(paths, values), out, values);
  return 0;
}

}  // namespace mllmsim::cli
