// mllmsim pack LENGTHS|MIXTURE: pack a data set with ISF, best fit or both, and say how good the
// packs are.
#include <fmt/format.h>

#include <boost/json.hpp>
#include <chrono>

#include "results/cli/command.hpp"
#include "results/cli/streams.hpp"
#include "results/run/version.hpp"
#include "results/text/text_table.hpp"
#include "scenarios/data_sets/data_lengths.hpp"
#include "scenarios/data_sets/data_mixture.hpp"
#include "scenarios/files/shipped_files.hpp"
#include "sim/base/errors.hpp"
#include "sim/base/files.hpp"
#include "sim/base/json_writer.hpp"
#include "sim/tables/parquet.hpp"
#include "strategies/data/batching.hpp"
#include "strategies/data/packing/best_fit.hpp"
#include "strategies/data/packing/isf.hpp"

namespace po = boost::program_options;

namespace mllmsim::cli {
namespace {

constexpr const char* kPackUsage =
    "usage: mllmsim pack LENGTHS...|MIXTURE [key=value ...] [options]\n\n"
    "Packs samples into sequences of at most Q_v tiles and Q_t tokens. LENGTHS is a .json,\n"
    ".csv or .parquet file with vit_num and token_num of each sample, or a meta file that\n"
    "lists several; several LENGTHS are packed together; MIXTURE is a .toml file or the\n"
    "name of a shipped one, and key=value changes it: max_tiles=1.\n";

struct Figures {
  std::string algorithm;
  std::size_t packs = 0, below = 0, oversized = 0;
  double samples_per_pack = 0, fill_tiles = 0, fill_tokens = 0, seconds = 0;
  data::DistRatio dist;
};

struct PackOptions {
  data::PackLimits limits, keep;
  int rounds = 50;
  std::uint64_t seed = 1;
  std::int64_t ranks = 8;
};

Figures judge(const std::string& algorithm, const data::DataSet& data, const data::Packing& packing,
              const PackOptions& options, double seconds) {
  const std::span<const data::Sample> samples = data.samples;
  Figures f;
  f.algorithm = algorithm;
  f.packs = packing.packs.size();
  f.oversized = packing.oversized.size();
  for (std::size_t p = 0; p < packing.packs.size(); ++p) {
    const data::Load load = data::total(samples, packing.packs[p]);
    f.below += load.tiles < options.keep.tiles && load.tokens < options.keep.tokens;
  }
  const data::Load sum = data::total(samples);
  const auto packs = static_cast<double>(f.packs);
  f.samples_per_pack = static_cast<double>(samples.size()) / packs;
  f.fill_tiles =
      static_cast<double>(sum.tiles) / (packs * static_cast<double>(options.limits.tiles));
  f.fill_tokens =
      static_cast<double>(sum.tokens) / (packs * static_cast<double>(options.limits.tokens));
  f.seconds = seconds;
  f.dist = data::dist_ratio(samples,
                            data::batches_of_packs(packing.packs, options.ranks, 1, options.seed));
  return f;
}

data::Packing timed_pack(const std::string& algorithm, const data::DataSet& data,
                         const PackOptions& options, double& seconds) {
  const auto start = std::chrono::steady_clock::now();
  data::Packing packing = algorithm == name_of(data::Batching::isf)
                              ? data::pack_isf(data.samples, {options.limits, options.keep,
                                                              options.rounds, options.seed})
                              : data::pack_best_fit(data.samples, options.limits);
  seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return packing;
}

// One row per sample: its pack, its position there, its number in the data set, and its set.
tables::Table membership(const data::DataSet& data, const data::Packing& packing) {
  std::vector<std::uint32_t> set_of(data.samples.size());
  for (std::size_t s = 0; s < data.sets.size(); ++s)
    std::fill(set_of.begin() + static_cast<std::ptrdiff_t>(data.sets[s].begin),
              set_of.begin() + static_cast<std::ptrdiff_t>(data.sets[s].end),
              static_cast<std::uint32_t>(s));
  std::vector<std::int64_t> pack, position, sample, tiles, tokens;
  for (auto* column : {&pack, &position, &sample, &tiles, &tokens})
    column->reserve(data.samples.size());
  tables::StringColumn set;
  for (std::size_t p = 0; p < packing.packs.size(); ++p) {
    std::int64_t at = 0;
    for (const data::SampleIndex i : packing.packs[p]) {
      pack.push_back(static_cast<std::int64_t>(p));
      position.push_back(at++);
      sample.push_back(i);
      tiles.push_back(data.samples[i].tiles);
      tokens.push_back(data.samples[i].tokens);
      set.push_back(data.sets[set_of[i]].name);
    }
  }
  return {{{"pack", pack},
           {"position", position},
           {"sample", sample},
           {"set", set},
           {"tiles", tiles},
           {"tokens", tokens}}};
}

void write_membership(const data::DataSet& data, const data::Packing& packing,
                      const std::string& algorithm, const PackOptions& options,
                      const std::string& source, const std::string& path) {
  const tables::Metadata metadata = {{"data", source},
                                     {"algorithm", algorithm},
                                     {"q_v", std::to_string(options.limits.tiles)},
                                     {"q_t", std::to_string(options.limits.tokens)},
                                     {"seed", std::to_string(options.seed)},
                                     {"version", std::string(results::version())}};
  tables::write_parquet(membership(data, packing), metadata, path);
  say(fmt::format("wrote {} ({})", path, algorithm));
}

double above(std::size_t packs, std::size_t bound) {
  return static_cast<double>(packs) / static_cast<double>(bound) - 1;
}

std::string table_text(const std::vector<Figures>& all, std::size_t bound) {
  std::vector<results::TextColumn> columns = {{"", results::Align::left}};
  for (const Figures& f : all) columns.push_back({f.algorithm});
  results::TextTable table(columns);
  const auto row = [&](const char* name, auto cell) {
    std::vector<std::string> cells = {name};
    for (const Figures& f : all) cells.push_back(cell(f));
    table.add_row(cells);
  };
  row("packs", [](const Figures& f) { return std::to_string(f.packs); });
  row("above the lower bound",
      [&](const Figures& f) { return fmt::format("{:.2f} %", 100 * above(f.packs, bound)); });
  row("samples per pack",
      [](const Figures& f) { return fmt::format("{:.2f}", f.samples_per_pack); });
  row("tiles filled", [](const Figures& f) { return fmt::format("{:.2f} %", 100 * f.fill_tiles); });
  row("tokens filled",
      [](const Figures& f) { return fmt::format("{:.2f} %", 100 * f.fill_tokens); });
  row("dist ratio, tiles", [](const Figures& f) { return fmt::format("{:.4f}", f.dist.tiles); });
  row("dist ratio, tokens", [](const Figures& f) { return fmt::format("{:.4f}", f.dist.tokens); });
  row("packs below threshold", [](const Figures& f) { return std::to_string(f.below); });
  row("oversized samples", [](const Figures& f) { return std::to_string(f.oversized); });
  row("seconds", [](const Figures& f) { return fmt::format("{:.3f}", f.seconds); });
  return table.text(2, 100);
}

std::string summary(const data::DataSet& data, const PackOptions& options, std::size_t bound,
                    const std::vector<Figures>& all) {
  const data::Load sum = data::total(data.samples);
  const auto count = static_cast<double>(data.samples.size());
  return fmt::format(
             "{} samples in {} {}, {:.2f} tiles and {:.0f} tokens per sample\n"
             "Q_v {} tiles, Q_t {} tokens; kept from {} tiles or {} tokens; at least {} {}; "
             "dist ratios over {} ranks\n\n",
             data.samples.size(), data.sets.size(), data.sets.size() == 1 ? "set" : "sets",
             static_cast<double>(sum.tiles) / count, static_cast<double>(sum.tokens) / count,
             options.limits.tiles, options.limits.tokens, options.keep.tiles, options.keep.tokens,
             bound, bound == 1 ? "pack" : "packs", options.ranks) +
         table_text(all, bound);
}

std::string to_json(const data::DataSet& data, const PackOptions& options, std::size_t bound,
                    const std::vector<Figures>& all) {
  boost::json::array packings;
  for (const Figures& f : all)
    packings.push_back({{"algorithm", f.algorithm},
                        {"packs", f.packs},
                        {"above_lower_bound", above(f.packs, bound)},
                        {"samples_per_pack", f.samples_per_pack},
                        {"fill_tiles", f.fill_tiles},
                        {"fill_tokens", f.fill_tokens},
                        {"dist_ratio_tiles", f.dist.tiles},
                        {"dist_ratio_tokens", f.dist.tokens},
                        {"packs_below_threshold", f.below},
                        {"oversized_samples", f.oversized},
                        {"seconds", f.seconds}});
  const boost::json::object object = {
      {"samples", data.samples.size()}, {"q_v", options.limits.tiles},
      {"q_t", options.limits.tokens},   {"ranks", options.ranks},
      {"lower_bound", bound},           {"packings", packings}};
  return pretty_json(object);
}

// A whole number of at least `least`, or `otherwise` if the option is not there.
std::int64_t number(const po::variables_map& values, const char* name, std::int64_t least,
                    std::int64_t otherwise, std::int64_t most = 100'000'000) {
  if (!values.count(name)) return otherwise;
  const auto value = values[name].as<std::int64_t>();
  if (value < least || value > most)
    throw UserError("command line", fmt::format("--{}", name),
                    fmt::format("expected a whole number from {} to {}", least, most));
  return value;
}

// A limit that no sample meets packs nothing. Samples above one that others meet get packs of their
// own, and are counted.
PackOptions options_of(const po::variables_map& values, const data::DataSet& data) {
  data::PackLimits least{data.samples[0].tiles, data.samples[0].tokens};
  for (const data::Sample& s : data.samples)
    least = {std::min<std::int64_t>(least.tiles, s.tiles),
             std::min<std::int64_t>(least.tokens, s.tokens)};
  PackOptions o;
  o.limits = data::choose_limits(data.samples);
  o.limits.tiles = number(values, "q-v", std::max<std::int64_t>(1, least.tiles), o.limits.tiles);
  o.limits.tokens = number(values, "q-t", std::max<std::int64_t>(1, least.tokens), o.limits.tokens);
  o.keep = data::default_keep(o.limits);
  o.keep.tiles = number(values, "keep-v", 1, o.keep.tiles, o.limits.tiles);
  o.keep.tokens = number(values, "keep-t", 1, o.keep.tokens, o.limits.tokens);
  o.rounds = static_cast<int>(number(values, "rounds", 0, o.rounds));
  o.ranks = number(values, "ranks", 1, o.ranks);
  o.seed = values["seed"].as<std::uint64_t>();
  return o;
}

std::vector<std::string> algorithms_of(const po::variables_map& values) {
  const auto name = values["algorithm"].as<std::string>();
  const std::string isf(name_of(data::Batching::isf));
  const std::string best_fit(name_of(data::Batching::best_fit));
  if (name == "both") return {isf, best_fit};
  if (name == isf || name == best_fit) return {name};
  throw UserError("command line", "--algorithm",
                  fmt::format("expected {}, {} or both, found {}", isf, best_fit, name));
}

void append(data::DataSet& all, const data::DataSet& more) {
  const std::size_t offset = all.samples.size();
  all.samples.insert(all.samples.end(), more.samples.begin(), more.samples.end());
  for (const data::SampleSet& set : more.sets)
    all.sets.push_back({set.name, offset + set.begin, offset + set.end});
}

data::DataSet data_of(const std::vector<std::string>& words, std::uint64_t seed) {
  if (!scenarios::is_lengths_file(words[0])) {
    const std::vector<std::string> overrides(words.begin() + 1, words.end());
    return scenarios::generate(scenarios::read_mixture(words[0], overrides), seed);
  }
  data::DataSet all;
  for (const std::string& word : words) {
    if (!scenarios::is_lengths_file(word))
      throw UserError("command line", word,
                      "only a mixture can be changed, not a lengths file; beside lengths files "
                      "there can be other lengths files");
    append(all, scenarios::read_lengths(word));
  }
  return all;
}

}  // namespace

int pack_command(const Arguments& arguments) {
  po::options_description options("options");
  const auto whole = [] { return po::value<std::int64_t>(); };
  options.add_options()("q-v", whole(), "most tiles of a pack (default: chosen from the data)")(
      "q-t", whole(), "most tokens of a pack (default: the longest sample)")(
      "keep-v", whole(), "ISF keeps packs from this many tiles (default: Q_v)")(
      "keep-t", whole(), "... or this many tokens (default: Q_t - 128)")(
      "algorithm", po::value<std::string>()->default_value("both"), "isf, best-fit or both")(
      "rounds", whole(), "rounds of ISF (default 50)")(
      "seed", po::value<std::uint64_t>()->default_value(1), "of the mixture and of ISF")(
      "ranks", whole(), "data-parallel ranks for the dist ratios (default 8)")(
      "out,o", po::value<std::string>(),
      "write who is in which pack to this Parquet file (of both: those with fewer packs)")(
      "json", "print JSON instead of a table");
  po::variables_map values;
  std::vector<std::string> words;
  if (!parse(arguments, kPackUsage, options, values, words)) return 0;
  if (words.empty()) {
    std::string names;
    for (const scenarios::ShippedFile& f : scenarios::shipped_data_sets())
      names += (names.empty() ? "" : ", ") + f.name;
    throw UserError("command line", "", "pack needs a lengths file or a mixture: " + names);
  }
  const std::vector<std::string> algorithms = algorithms_of(values);
  const data::DataSet data = data_of(words, values["seed"].as<std::uint64_t>());
  const PackOptions chosen = options_of(values, data);
  const std::size_t bound = data::fewest_packs(data.samples, chosen.limits);
  std::vector<Figures> all;
  std::string written;  // the algorithm of the fewest packs
  data::Packing fewest;
  for (const std::string& algorithm : algorithms) {
    double seconds = 0;
    data::Packing packing = timed_pack(algorithm, data, chosen, seconds);
    all.push_back(judge(algorithm, data, packing, chosen, seconds));
    if (all.size() > 1 && packing.packs.size() >= fewest.packs.size()) continue;
    fewest = std::move(packing);
    written = algorithm;
  }
  if (values.count("out"))
    write_membership(data, fewest, written, chosen, fmt::format("{}", fmt::join(words, " ")),
                     values["out"].as<std::string>());
  if (values.count("json"))
    print_data(to_json(data, chosen, bound, all));
  else
    print_text(summary(data, chosen, bound, all));
  return 0;
}

}  // namespace mllmsim::cli
