#include "strategies/omnibal/partition_search.hpp"

#include <algorithm>
#include <cmath>

#include "strategies/plans/balanced_cut.hpp"
#include "strategies/plans/partition.hpp"

namespace mllmsim::omnibal {
namespace {

// Beyond this many, cuts move one at a time instead of all together.
constexpr double kMostCandidates = 20'000;

double spread_ms(const std::vector<Seconds>& forward, const Cut& cut) {
  std::vector<double> stages;
  std::size_t at = 0;
  for (const std::size_t size : cut) {
    double sum = 0;
    for (std::size_t i = 0; i < size; ++i) sum += forward[at++].value;
    stages.push_back(sum * 1e3);
  }
  double mean = 0, square = 0;
  for (const double s : stages) mean += s / static_cast<double>(stages.size());
  for (const double s : stages) square += (s - mean) * (s - mean);
  return std::sqrt(square / static_cast<double>(stages.size()));
}

double sent_mib(const std::vector<Bytes>& boundary, const Cut& cut) {
  double sum = 0;
  std::size_t at = 0;
  for (std::size_t i = 0; i + 1 < cut.size(); ++i) {
    at += cut[i];
    sum += static_cast<double>(boundary[at - 1].value) / (1 << 20);
  }
  return sum;
}

// Moves the boundary behind stage i by `by` layers; false if a stage would be empty.
bool move_cut(Cut& cut, std::size_t i, int by) {
  const auto left = static_cast<std::int64_t>(cut[i]) + by;
  const auto right = static_cast<std::int64_t>(cut[i + 1]) - by;
  if (left < 1 || right < 1) return false;
  cut[i] = static_cast<std::size_t>(left);
  cut[i + 1] = static_cast<std::size_t>(right);
  return true;
}

void all_moves(const Cut& cut, std::size_t i, int radius, std::vector<Cut>& out) {
  if (i + 1 == cut.size()) {
    out.push_back(cut);
    return;
  }
  for (int by = -radius; by <= radius; ++by) {
    Cut moved = cut;
    if (by == 0 || move_cut(moved, i, by)) all_moves(moved, i + 1, radius, out);
  }
}

std::vector<Cut> candidates(const Cut& anchor, int radius) {
  std::vector<Cut> out;
  const double all = std::pow(2.0 * radius + 1, static_cast<double>(anchor.size() - 1));
  if (all <= kMostCandidates) {
    all_moves(anchor, 0, radius, out);
    return out;
  }
  out.push_back(anchor);
  for (std::size_t i = 0; i + 1 < anchor.size(); ++i)
    for (int by = -radius; by <= radius; ++by) {
      Cut moved = anchor;
      if (by != 0 && move_cut(moved, i, by)) out.push_back(moved);
    }
  return out;
}

}  // namespace

Cut greedy_cut(const std::vector<Seconds>& forward, std::size_t stages) {
  double rest = 0;
  for (const Seconds t : forward) rest += t.value;
  Cut cut;
  std::size_t at = 0;
  for (std::size_t left = stages; left > 1; --left) {
    const double share = rest / static_cast<double>(left);
    std::size_t size = 1;
    double sum = forward[at].value;
    // One layer more as long as that comes nearer, and the other stages still get one each.
    while (at + size + (left - 1) < forward.size() &&
           std::abs(sum + forward[at + size].value - share) <= std::abs(sum - share))
      sum += forward[at + size++].value;
    cut.push_back(size);
    at += size;
    rest -= sum;
  }
  cut.push_back(forward.size() - at);
  return cut;
}

std::vector<Cut> ranked_cuts(const PartitionCosts& costs, const Cut& anchor, int radius) {
  std::vector<std::pair<double, Cut>> ranked;
  for (Cut& cut : candidates(anchor, radius)) {
    const double rank = spread_ms(costs.forward, cut) + sent_mib(costs.boundary, cut);
    ranked.emplace_back(rank, std::move(cut));
  }
  std::sort(ranked.begin(), ranked.end());
  std::vector<Cut> cuts;
  for (auto& [rank, cut] : ranked) cuts.push_back(std::move(cut));
  return cuts;
}

Cut search_cut(const PartitionCosts& costs, std::size_t stages, const SearchOptions& options,
               const StepTime& step_time) {
  const Cut anchor = greedy_cut(costs.forward, stages);
  if (stages == 1) return anchor;
  std::vector<Cut> cuts = ranked_cuts(costs, anchor, options.radius);
  cuts.resize(std::min(cuts.size(), options.simulated));
  Cut best;
  Time least{};
  for (const Cut& cut : cuts) {
    const Time time = step_time(cut);
    if (!best.empty() && time >= least) continue;
    best = cut;
    least = time;
  }
  return best;
}

Cut exact_cut(const PartitionCosts& costs, std::size_t stages, const StepTime& step_time) {
  std::vector<double> weights;
  for (const Seconds t : costs.total) weights.push_back(t.value);
  Cut best = plans::balanced_cut(weights, stages);
  Time least = step_time(best);
  for (bool better = true; better;) {
    better = false;
    for (std::size_t i = 0; i + 1 < stages; ++i)
      for (const int by : {-1, 1}) {
        Cut moved = best;
        if (!move_cut(moved, i, by)) continue;
        const Time time = step_time(moved);
        if (time >= least) continue;
        best = std::move(moved);
        least = time;
        better = true;
      }
  }
  return best;
}

}  // namespace mllmsim::omnibal
