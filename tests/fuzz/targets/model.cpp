// A model file.
#include "scenarios/read/scenario.hpp"
#include "tests/fuzz/fuzz.hpp"

namespace mllmsim::fuzz {
namespace {

void read(const std::string& bytes) {
  scenarios::read_model_file(scratch_file("model.toml", bytes).string());
}

const Registered kTarget("model", read);

}  // namespace
}  // namespace mllmsim::fuzz
