// Hugging Face's config.json as either part of a model, and as a whole one.
#include "scenarios/hf/hf_config.hpp"

#include "scenarios/read/scenario.hpp"
#include "tests/fuzz/fuzz.hpp"

namespace mllmsim::fuzz {
namespace {

void read(const std::string& bytes) {
  const std::string file = scratch_file("config.json", bytes).string();
  attempt([&] { scenarios::read_hf_config(file, scenarios::ModelPart::llm); });
  attempt([&] { scenarios::read_hf_config(file, scenarios::ModelPart::encoder); });
  attempt([&] {
    scenarios::read_model_file(scratch_file("whole.toml", "hf_config = '" + file + "'\n").string());
  });
  const std::string model = scratch_file("model.toml", "llm = { hf_config = '" + file +
                                                           "' }\nencoders = [{ hf_config = '" +
                                                           file + "', projector = 'mlp2' }]\n")
                                .string();
  scenarios::read_model_file(model);
}

const Registered kTarget("hf_config", read);

}  // namespace
}  // namespace mllmsim::fuzz
