// Lengths of samples, the same bytes as JSON (a list or a meta file) and as CSV.
#include "scenarios/data_sets/data_lengths.hpp"
#include "tests/fuzz/fuzz.hpp"

namespace mllmsim::fuzz {
namespace {

void read(const std::string& bytes) {
  attempt([&] { scenarios::read_lengths(scratch_file("lengths.csv", bytes)); });
  scenarios::read_lengths(scratch_file("lengths.json", bytes));
}

const Registered kTarget("lengths", read);

}  // namespace
}  // namespace mllmsim::fuzz
