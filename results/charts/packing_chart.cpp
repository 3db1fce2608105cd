#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "results/charts/cells.hpp"
#include "results/charts/table_charts.hpp"
#include "sim/base/hash.hpp"

namespace mllmsim::charts {
namespace {

struct Load {
  double tiles = 0, tokens = 0;
};

// The same shuffle everywhere, which std::shuffle does not promise.
std::vector<Load> random_micro_batches(const std::vector<Load>& samples, std::size_t packs,
                                       std::uint64_t seed) {
  std::vector<std::size_t> order(samples.size());
  std::iota(order.begin(), order.end(), 0);
  for (std::size_t i = order.size(); i > 1; --i)
    std::swap(order[i - 1], order[split_mix(seed += kSplitMixStep) % i]);
  const double each = static_cast<double>(samples.size()) / static_cast<double>(packs);
  const auto size = std::max<std::size_t>(1, static_cast<std::size_t>(std::lround(each)));
  std::vector<Load> out(samples.size() / size);  // the rest would be a smaller one
  for (std::size_t i = 0; i < out.size() * size; ++i) {
    out[i / size].tiles += samples[order[i]].tiles;
    out[i / size].tokens += samples[order[i]].tokens;
  }
  return out;
}

// Sizes in rising order over their rank in percent, at most a few per pixel.
plot::Series sorted(std::string name, const std::vector<Load>& loads, double Load::*part,
                    plot::Colour colour) {
  std::vector<double> sizes;
  for (const Load& l : loads) sizes.push_back(l.*part);
  std::sort(sizes.begin(), sizes.end());
  plot::Series s;
  s.name = std::move(name);
  s.colour = colour;
  const std::size_t drawn = std::min<std::size_t>(sizes.size(), 2000);
  for (std::size_t i = 0; i < drawn; ++i) {
    const std::size_t at = drawn > 1 ? i * (sizes.size() - 1) / (drawn - 1) : 0;
    s.x.push_back(100 * (static_cast<double>(at) + 0.5) / static_cast<double>(sizes.size()));
    s.y.push_back(sizes[at]);
  }
  return s;
}

std::string about(const tables::Metadata& metadata, const char* key, const char* otherwise) {
  const auto at = metadata.find(key);
  return at == metadata.end() ? otherwise : at->second;
}

}  // namespace

plot::Chart packing_chart(const tables::ParquetFile& file) {
  const tables::Table& t = file.table;
  const tables::Column &pack = column_of(t, "pack", "PATH"), &tiles = column_of(t, "tiles", "PATH"),
                       &tokens = column_of(t, "tokens", "PATH");
  std::vector<Load> samples, packs;
  for (std::size_t i = 0; i < t.rows(); ++i) {
    const std::optional<double> p = number(pack, i), v = number(tiles, i), n = number(tokens, i);
    if (!p || !v || !n || *p < 0 || *p >= static_cast<double>(t.rows()))
      throw UserError("command line", "PATH", "expected what `mllmsim pack --out` writes");
    samples.push_back({*v, *n});
    const auto number_of_pack = static_cast<std::size_t>(*p);
    if (packs.size() <= number_of_pack) packs.resize(number_of_pack + 1);
    packs[number_of_pack].tiles += *v;
    packs[number_of_pack].tokens += *n;
  }
  if (samples.empty()) throw UserError("command line", "PATH", "no samples in it");
  const std::string seed = about(file.metadata, "seed", "1");
  const std::vector<Load> random =
      random_micro_batches(samples, packs.size(), std::strtoull(seed.c_str(), nullptr, 10));

  plot::Chart chart;
  chart.title = fmt::format(
      "{}: {} samples in {} packs by {}\nand in {} random micro-batches of {} samples",
      about(file.metadata, "data", "data"), samples.size(), packs.size(),
      about(file.metadata, "algorithm", "?"), random.size(), samples.size() / random.size());
  chart.x_label = "micro-batches, smallest first (%)";
  chart.x_range = plot::Range{0, 100};
  chart.panels.clear();
  for (const auto& [label, part, key] :
       {std::tuple{"tiles", &Load::tiles, "q_v"}, {"tokens", &Load::tokens, "q_t"}}) {
    plot::Panel panel;
    panel.y_label = fmt::format("{} per micro-batch", label);
    panel.series = {sorted("before: random micro-batches", random, part, 0xd55e00),
                    sorted("after: packs", packs, part, 0x0072b2)};
    double high = std::strtod(about(file.metadata, key, "0").c_str(), nullptr);
    if (high > 0)
      panel.series.push_back(
          {"most that a pack may hold", {0, 100}, {high, high}, plot::SeriesStyle::guide, {}, {}});
    for (const plot::Series& s : panel.series)
      high = std::max(high, *std::max_element(s.y.begin(), s.y.end()));
    panel.y_range = plot::Range{0, high > 0 ? 1.05 * high : 1};
    chart.panels.push_back(std::move(panel));
  }
  return chart;
}

}  // namespace mllmsim::charts
