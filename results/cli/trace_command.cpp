// mllmsim trace RUN --out x.json[.gz]: a run's timeline for trace viewers.
#include "results/cli/command.hpp"
#include "results/cli/streams.hpp"
#include "results/run/run_tables.hpp"
#include "results/trace/trace.hpp"
#include "sim/base/errors.hpp"
#include "sim/base/pending_file.hpp"
#include "sim/tables/gzip.hpp"

namespace po = boost::program_options;

namespace mllmsim::cli {
namespace {

constexpr const char* kTraceUsage =
    "usage: mllmsim trace RUN --out FILE.json[.gz] [options]\n\n"
    "Writes the timeline of RUN, a directory that `mllmsim run` left, as trace events in\n"
    "the shape of PyTorch profiler traces. Open it in https://ui.perfetto.dev or\n"
    "chrome://tracing.\n";

}  // namespace

int trace_command(const Arguments& arguments) {
  po::options_description options("options");
  options.add_options()("out,o", po::value<std::string>(), "file to write, .json or .json.gz")(
      "step", po::value<std::int64_t>(), "one of the kept steps (default: the first)")(
      "ranks", po::value<std::string>(),
      "global ranks, such as 0,3 or 0-7 (default: all, or one replica if they are many)");
  po::variables_map values;
  Arguments words;
  if (!parse(arguments, kTraceUsage, options, values, words)) return 0;
  if (words.size() != 1) throw UserError("command line", "", "trace needs one RUN");
  if (!values.count("out")) throw UserError("command line", "--out", "trace needs a file to write");
  const std::string out = values["out"].as<std::string>();
  if (!out.ends_with(".json") && !out.ends_with(".json.gz"))
    throw UserError("command line", "--out", "expected a name that ends in .json or .json.gz");
  charts::Choice choice;
  if (values.count("step")) choice.step = values["step"].as<std::int64_t>();
  if (values.count("ranks")) choice.ranks = charts::parse_ranks(values["ranks"].as<std::string>());
  const results::RunResult run = results::read_run(words.front());
  PendingFile file(out);
  const auto write = [&](std::string_view piece) { file.write(piece); };
  if (out.ends_with(".gz")) {
    tables::GzipStream zipped(write);
    results::write_trace(run, choice, [&](std::string_view piece) { zipped.add(piece); });
    zipped.finish();
  } else {
    results::write_trace(run, choice, write);
  }
  file.close();
  file.put_in_place();
  say("wrote " + out);
  return 0;
}

}  // namespace mllmsim::cli
