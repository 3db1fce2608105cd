// A description of a data set.
#include "scenarios/data_sets/data_mixture.hpp"
#include "tests/fuzz/fuzz.hpp"

namespace mllmsim::fuzz {
namespace {

void read(const std::string& bytes) {
  const scenarios::Mixture mixture =
      scenarios::read_mixture(scratch_file("mixture.toml", bytes).string());
  constexpr std::int64_t kGenerated = 10'000;  // more only take longer
  std::int64_t samples = 0;
  for (const scenarios::MixtureSet& set : mixture.sets) samples += set.samples;
  if (samples <= kGenerated) scenarios::generate(mixture, 1);
}

const Registered kTarget("mixture", read);

}  // namespace
}  // namespace mllmsim::fuzz
