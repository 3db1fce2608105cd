#include "strategies/plans/balanced_cut.hpp"

#include <algorithm>
#include <limits>
#include <utility>

#include "sim/base/errors.hpp"

namespace mllmsim::plans {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// Weights of runs of layers [i, j). Sums are rounded, but never fall when a run gets longer: what
// follows relies on that.
class Runs {
 public:
  explicit Runs(const std::vector<double>& weights) : before_(weights.size() + 1, 0) {
    for (std::size_t i = 0; i < weights.size(); ++i) before_[i + 1] = before_[i] + weights[i];
  }
  std::size_t layers() const { return before_.size() - 1; }
  double weight(std::size_t i, std::size_t j) const { return before_[j] - before_[i]; }
  // The last end of a run from i, and the first start of one to j, within the limit.
  std::size_t end_from(std::size_t i, double limit) const {
    const auto fits = [&](double before) { return before - before_[i] <= limit; };
    return index(std::partition_point(at(i), before_.end(), fits)) - 1;
  }
  std::size_t start_to(std::size_t j, double limit) const {
    const auto too_long = [&](double before) { return before_[j] - before > limit; };
    return index(std::partition_point(before_.begin(), at(j), too_long));
  }

 private:
  std::vector<double>::const_iterator at(std::size_t i) const {
    return before_.begin() + static_cast<std::ptrdiff_t>(i);
  }
  std::size_t index(std::vector<double>::const_iterator i) const {
    return static_cast<std::size_t>(i - before_.begin());
  }
  std::vector<double> before_;
};

// The least that the heaviest of `parts` parts can weigh. best[l] is that of the first l layers: it
// grows with l while the last part [j, l) gets lighter with j, so the best j is where they meet.
double lightest_maximum(const Runs& runs, std::size_t parts) {
  const std::size_t n = runs.layers();
  std::vector<double> best(n + 1);
  for (std::size_t l = 1; l <= n; ++l) best[l] = runs.weight(0, l);
  for (std::size_t m = 2; m <= parts; ++m)
    for (std::size_t l = n - (parts - m); l >= m; --l) {  // downwards: best[j < l] has m - 1 parts
      std::size_t from = m - 1, to = l - 1;
      while (from < to) {
        const std::size_t j = (from + to) / 2;
        if (best[j] >= runs.weight(j, l))
          to = j;
        else
          from = j + 1;
      }
      best[l] = std::max(best[from], runs.weight(from, l));
      if (from > m - 1) best[l] = std::min(best[l], runs.weight(from - 1, l));
    }
  return best[n];
}

// Of the cuts whose parts all keep within the limit, that with the least sum of squared weights.
// Part m can only end where the parts before it reach and those after it can still take the rest,
// which are few places if the limit is tight.
std::vector<std::size_t> least_squares(const Runs& runs, std::size_t parts, double limit) {
  const std::size_t n = runs.layers();
  struct Ends {
    std::size_t first, last;
    std::vector<double> best;
    std::vector<std::size_t> from;
  };
  std::vector<Ends> ends(parts + 1);
  for (std::size_t m = 0, last = 0; m <= parts; ++m) {
    ends[m].last = last;
    last = std::min(runs.end_from(last, limit), n - (parts - std::min(m + 1, parts)));
  }
  for (std::size_t m = parts + 1, first = n; m-- > 0;) {
    ends[m].first = first;
    first = std::max(runs.start_to(first, limit), m == 0 ? 0 : m - 1);
  }
  ends[0].best = {0};
  for (std::size_t m = 1; m <= parts; ++m) {
    const Ends& before = ends[m - 1];
    for (std::size_t l = ends[m].first; l <= ends[m].last; ++l) {
      double& best = ends[m].best.emplace_back(kInfinity);
      std::size_t& from = ends[m].from.emplace_back(0);
      for (std::size_t j = std::max(before.first, runs.start_to(l, limit));
           j <= std::min(before.last, l - 1); ++j) {
        const double weight = runs.weight(j, l);
        const double value = before.best[j - before.first] + weight * weight;
        if (value >= best * (1 - 1e-9)) continue;  // rounding is no improvement
        best = value;
        from = j;
      }
    }
  }
  std::vector<std::size_t> sizes(parts);
  for (std::size_t m = parts, l = n; m > 0; --m) {
    const std::size_t from = ends[m].from[l - ends[m].first];
    sizes[m - 1] = l - from;
    l = from;
  }
  return sizes;
}

// Where chunks may begin and end: anywhere, or at every so many of very many layers, as the time
// grows with the square of these places.
constexpr std::size_t kMostPlaces = 256;
std::vector<std::size_t> chunk_ends(std::size_t layers, std::size_t ranks, std::size_t chunks) {
  std::size_t step = (layers + kMostPlaces - 1) / kMostPlaces;
  while (step > 1 && chunks * ((ranks + step - 1) / step * step) > layers) --step;
  std::vector<std::size_t> places;
  for (std::size_t at = 0; at < layers; at += step) places.push_back(at);
  places.push_back(layers);
  return places;
}

}  // namespace

std::vector<std::size_t> balanced_cut(const std::vector<double>& weights, std::size_t parts,
                                      double slack) {
  check(parts >= 1 && parts <= weights.size(), "a cut needs as many layers as parts");
  const Runs runs(weights);
  return least_squares(runs, parts, lightest_maximum(runs, parts) * (1 + slack + 1e-12));
}

std::vector<std::size_t> cut_by_chunks(const std::vector<double>& weights, std::size_t ranks,
                                       std::size_t chunks) {
  const std::size_t n = weights.size();
  check(n >= ranks * chunks, "a cut needs as many layers as parts");
  const Runs runs(weights);
  // The heaviest of `ranks` parts of layers [i, j), to within 1e-9 of it.
  const auto heaviest = [&](std::size_t i, std::size_t j) {
    double low = runs.weight(i, j) / static_cast<double>(ranks), high = runs.weight(i, j);
    for (std::size_t k = i; k < j; ++k) low = std::max(low, weights[k]);
    const auto fits = [&](double limit) {
      std::size_t at = i;
      for (std::size_t part = 0; part < ranks && at < j; ++part)
        at = std::min(j, runs.end_from(at, limit));
      return at == j;
    };
    if (fits(low)) return low;
    while (high - low > 1e-9 * high) {
      const double middle = (low + high) / 2;
      (fits(middle) ? high : low) = middle;
    }
    return high;
  };
  // best[b]: the least sum of the layers up to places[b] in c chunks.
  const std::vector<std::size_t> places = chunk_ends(n, ranks, chunks);
  const std::size_t longest = n - ranks * (chunks - 1), last = places.size() - 1;
  struct Window {
    std::size_t end;
    double heaviest;
  };
  std::vector<std::vector<Window>> windows(last);
  for (std::size_t a = 0; a < last; ++a)
    for (std::size_t b = a + 1; b <= last && places[b] <= places[a] + longest; ++b)
      if (places[b] >= places[a] + ranks) windows[a].push_back({b, heaviest(places[a], places[b])});
  std::vector<double> best(places.size(), kInfinity);
  best[0] = 0;
  std::vector<std::vector<std::size_t>> from(chunks, std::vector<std::size_t>(places.size(), 0));
  for (std::size_t c = 0; c < chunks; ++c) {
    std::vector<double> next(places.size(), kInfinity);
    for (std::size_t a = 0; a < last; ++a)
      for (const Window& w : windows[a]) {
        if (best[a] + w.heaviest >= next[w.end] * (1 - 1e-9)) continue;
        next[w.end] = best[a] + w.heaviest;
        from[c][w.end] = a;
      }
    best = std::move(next);
  }
  std::vector<std::size_t> sizes(ranks * chunks);
  for (std::size_t c = chunks, end = last; c-- > 0;) {
    const std::size_t begin = from[c][end];
    const auto at = [&](std::size_t k) {
      return weights.begin() + static_cast<std::ptrdiff_t>(places[k]);
    };
    const auto parts = balanced_cut(std::vector<double>(at(begin), at(end)), ranks);
    std::copy(parts.begin(), parts.end(), sizes.begin() + static_cast<std::ptrdiff_t>(c * ranks));
    end = begin;
  }
  return sizes;
}

}  // namespace mllmsim::plans
