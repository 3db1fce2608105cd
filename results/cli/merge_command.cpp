// mllmsim merge DIR...: the shards of a sweep as if it had run in one piece.
#include <fmt/format.h>

#include "results/cli/command.hpp"
#include "results/cli/streams.hpp"
#include "results/sweep/sweep_tables.hpp"
#include "sim/base/errors.hpp"

namespace po = boost::program_options;
namespace fs = std::filesystem;

namespace mllmsim::cli {
namespace {

constexpr const char* kMergeUsage =
    "usage: mllmsim merge DIR... [--out DIR]\n\n"
    "Joins the results of `mllmsim sweep --shard` into the very files that one sweep would\n"
    "have written. DIR is the directory of the sweep, with its shard-I-of-N, or that of\n"
    "each shard. All shards must be there.\n";

// Where all of them lie.
fs::path common_parent(const std::vector<fs::path>& directories) {
  fs::path parent;
  for (const fs::path& d : directories) {
    const fs::path own = (d / "").parent_path().parent_path();
    if (&d == &directories.front()) parent = own;
    if (own != parent || own.empty())
      throw UserError("command line", "--out", "missing: the shards are in several directories");
  }
  return parent;
}

// A sweep's own directory; shards that lie in one directory belong there.
fs::path default_out(const std::vector<fs::path>& directories,
                     const std::vector<fs::path>& shards) {
  if (directories.size() == 1 && shards != directories) return directories.front();
  return common_parent(directories);
}

}  // namespace

int merge_command(const Arguments& arguments) {
  po::options_description options("options");
  options.add_options()("out,o", po::value<std::string>(),
                        "directory for the results (default: the sweep's, that the shards are in)");
  po::variables_map values;
  std::vector<std::string> words;
  if (!parse(arguments, kMergeUsage, options, values, words)) return 0;
  if (words.empty()) throw UserError("command line", "", "merge needs directories of shards");
  const std::vector<fs::path> directories(words.begin(), words.end());
  const std::vector<fs::path> shards = sweep::find_shards(directories);
  const fs::path out = values.count("out") ? fs::path(values["out"].as<std::string>())
                                           : default_out(directories, shards);
  const sweep::SweepTables tables = sweep::merge_sweeps(shards);
  sweep::write_sweep(tables, out);
  say(fmt::format("wrote {}, {} points", out.string(), tables.runs.rows()));
  return 0;
}

}  // namespace mllmsim::cli
