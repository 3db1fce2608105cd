#include "scenarios/data_sets/data_mixture.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <system_error>

#include "scenarios/files/shipped_files.hpp"
#include "scenarios/tree/merge.hpp"
#include "scenarios/tree/toml_parse.hpp"
#include "scenarios/tree/toml_reader.hpp"
#include "sim/base/text.hpp"

namespace mllmsim::scenarios {
namespace {

namespace fs = std::filesystem;

constexpr Range kTokens{1, 1e8};
constexpr Range kSamples{1, 4e9};  // an index of a sample has 32 bits
constexpr double kMostTiles = 1e4;

// { 1 = 0.47, 3 = 0.30 }: number of tiles = share.
void read_histogram(TableReader& set, MixtureSet& out, Problems& problems) {
  const Node* node = set.find("tiles");
  if (!node) return set.problem("tiles", "missing; a set without images says text_only = true");
  if (!node->is<Node::Table>() || node->as<Node::Table>().empty())
    return set.problem("tiles", "expected shares by number of tiles, such as { 1 = 0.6, 5 = 0.4 }");
  TableReader reader(*node, set.full_key("tiles"), problems);
  for (const auto& [key, value] : node->as<Node::Table>()) {
    const auto tiles = to_number<std::int32_t>(key);
    double share = 0;
    const bool right = reader.read(key, share, {0, 1e12});
    if (!tiles || *tiles < 1 || *tiles > kMostTiles)
      reader.problem(key, "expected a number of tiles as the key");
    else if (right && share > 0)
      out.tiles.emplace_back(*tiles, share);
  }
  std::sort(out.tiles.begin(), out.tiles.end());
  if (out.tiles.empty()) set.problem("tiles", "expected at least one share above 0");
}

void read_text(TableReader& set, TextLength& out, Problems& problems) {
  const Node* node = set.find("text");
  if (!node) return set.problem("text", "missing, and it has no default");
  TableReader reader(*node, set.full_key("text"), problems);
  out.max = static_cast<std::int64_t>(kTokens.max);
  reader.require("median", out.median, Range{0, kTokens.max});
  reader.read("sigma", out.sigma, {0, 10});
  reader.read("shift", out.shift, {0, kTokens.max});
  reader.read("max", out.max, kTokens);
}

MixtureSet read_set(const Node& table, const std::string& key, Problems& problems) {
  TableReader reader(table, key, problems);
  MixtureSet set;
  std::string part;
  bool text_only = false;
  reader.require("name", set.name);
  reader.read("part", part);
  reader.require("samples", set.samples, kSamples);
  reader.read("text_only", text_only);
  if (!text_only)
    read_histogram(reader, set, problems);
  else if (reader.has("tiles"))
    reader.problem("tiles", "a text-only set has none");
  read_text(reader, set.text, problems);
  return set;
}

void read_sets(TableReader& reader, Mixture& mixture, Problems& problems) {
  const Node* sets = reader.find("sets");
  if (!sets || !sets->is<Node::Array>() || sets->as<Node::Array>().empty())
    return reader.problem("sets", "expected at least one [[sets]] table");
  double samples = 0;
  for (const Node& set : sets->as<Node::Array>()) {
    mixture.sets.push_back(read_set(set, fmt::format("sets.{}", mixture.sets.size()), problems));
    samples += static_cast<double>(mixture.sets.back().samples);
  }
  if (samples > kSamples.max)
    reader.problem("sets", fmt::format("expected at most {:.0f} samples in all", kSamples.max));
}

}  // namespace

Mixture read_mixture(const std::string& reference, const std::vector<std::string>& overrides) {
  const fs::path file = existing(reference, ShippedKind::data_set);
  Node root = parse_toml_file(file);
  Problems problems;
  apply_overrides(root, overrides, problems);
  Mixture mixture;
  mixture.name = file.stem().string();
  {
    TableReader reader(root, "", problems);
    reader.read("description", mixture.description);
    reader.read("tokens_per_tile", mixture.tokens_per_tile, {0, kTokens.max});
    reader.read("max_tokens", mixture.max_tokens, kTokens);
    reader.read("measured_max_tiles", mixture.measured_tiles, {1, kMostTiles});
    mixture.max_tiles = mixture.measured_tiles;
    if (reader.read("max_tiles", mixture.max_tiles) && mixture.max_tiles > mixture.measured_tiles)
      reader.problem("max_tiles",
                     fmt::format("the histograms say nothing above measured_max_tiles = {}",
                                 mixture.measured_tiles));
    read_sets(reader, mixture, problems);
  }
  problems.throw_if_any();
  return mixture;
}

}  // namespace mllmsim::scenarios
