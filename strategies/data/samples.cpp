#include "strategies/data/samples.hpp"

namespace mllmsim::data {

Load total(std::span<const Sample> samples) {
  Load load;
  for (const Sample& s : samples) load += s;
  return load;
}

Load total(std::span<const Sample> samples, std::span<const SampleIndex> group) {
  Load load;
  for (const SampleIndex i : group) load += samples[i];
  return load;
}

}  // namespace mllmsim::data
