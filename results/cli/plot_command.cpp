// mllmsim plot KIND PATH...: pictures of what runs, sweeps and other commands left.
#include <fmt/format.h>

#include <array>
#include <filesystem>
#include <iostream>

#include "results/cli/command.hpp"
#include "results/pictures/timeline_chart.hpp"
#include "results/run_tables.hpp"
#include "sim/atomic_file.hpp"
#include "sim/errors.hpp"

namespace po = boost::program_options;
namespace fs = std::filesystem;

namespace mllmsim {
namespace {

constexpr const char* kUsage =
    "usage: mllmsim plot KIND PATH... [options]\n\n"
    "  timeline RUN...     device lanes of a step: passes, communication, bubbles\n"
    "  bubbles RUN...      bubbles by stage and kind\n"
    "  memory RUN...       memory of each stage over a step, with what a GPU has\n\n"
    "RUN is a directory that `mllmsim run` left; several are drawn one above the other on the same "
    "axis.\n";

using Paths = std::vector<std::string>;

std::vector<RunResult> read_runs(const Paths& paths) {
  std::vector<RunResult> runs;
  for (const std::string& path : paths) runs.push_back(read_run(path));
  return runs;
}

Choice choice_of(const po::variables_map& values) {
  Choice choice;
  if (values.count("step")) choice.step = values["step"].as<std::int64_t>();
  if (values.count("ranks")) choice.ranks = parse_ranks(values["ranks"].as<std::string>());
  if (values.count("zoom")) choice.zoom = parse_zoom(values["zoom"].as<std::string>());
  return choice;
}

struct Kind {
  const char* name;
  Chart (*draw)(const Paths&, const po::variables_map&);
};

constexpr std::array kKinds{
    Kind{"timeline",
         [](const Paths& p, const po::variables_map& v) {
           return timeline_chart(read_runs(p), choice_of(v));
         }},
    Kind{"bubbles",
         [](const Paths& p, const po::variables_map&) { return bubbles_chart(read_runs(p)); }},
    Kind{"memory",
         [](const Paths& p, const po::variables_map& v) {
           return memory_chart(read_runs(p), choice_of(v));
         }},
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
  return (fs::is_directory(path) ? path : path.parent_path()) / (kind + ".svg");
}

// Without gnuplot there is no picture, but what it would show is still worth having.
void draw(const Chart& chart, const fs::path& out, const po::variables_map& values) {
  const auto write_data = [&](const fs::path& file) {
    write_file_atomically(file, to_csv(chart));
    std::cerr << "wrote " << file.string() << "\n";
  };
  if (values.count("data")) write_data(values["data"].as<std::string>());
  try {
    save(chart, out);
  } catch (const EnvironmentError&) {
    if (!values.count("data")) write_data(fs::path(out).replace_extension(".csv"));
    throw;
  }
  std::cerr << "wrote " << out.string() << "\n";
}

}  // namespace

int plot_command(const Arguments& arguments) {
  po::options_description options("options");
  options.add_options()("out,o", po::value<std::string>(),
                        ".svg, .png or .pdf file (default: KIND.svg beside the first PATH)")(
      "data", po::value<std::string>(), "also write what is drawn to this .csv file")(
      "step", po::value<std::int64_t>(), "timeline, memory: one of the kept steps")(
      "ranks", po::value<std::string>(), "timeline, memory: global ranks, such as 0,3 or 0-7")(
      "zoom", po::value<std::string>(), "timeline, memory: from:to in seconds, such as 0.5:1.2");
  po::variables_map values;
  Arguments words;
  if (!parse(arguments, kUsage, options, values, words)) return 0;
  if (words.empty()) throw UserError("command line", "", "plot needs a KIND; --help lists them");
  const Kind& kind = kind_of(words.front());
  const Paths paths(words.begin() + 1, words.end());
  if (paths.empty())
    throw UserError("command line", "", fmt::format("plot {} needs a PATH", kind.name));
  const fs::path out = values.count("out") ? fs::path(values["out"].as<std::string>())
                                           : default_out(kind.name, paths.front());
  draw(kind.draw(paths, values), out, values);
  return 0;
}

}  // namespace mllmsim
