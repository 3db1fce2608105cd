// Records of what samples hold (texts, pictures, videos), as JSON lines and as CSV, for models that
// count pictures by tiles, by patches and not at all.
#include "scenarios/data_sets/data_media.hpp"
#include "scenarios/read/scenario.hpp"
#include "tests/fuzz/fuzz.hpp"

namespace mllmsim::fuzz {
namespace {

void read(const std::string& bytes) {
  static const std::vector<Model> models = {scenarios::read_model_file("internvl2.5-8b"),
                                            scenarios::read_model_file("qwen2-vl-72b"),
                                            scenarios::read_model_file("llama-3-8b")};
  for (const char* name : {"media.jsonl", "media.csv"}) {
    const std::filesystem::path file = scratch_file(name, bytes);
    attempt([&] { scenarios::is_media_file(file); });
    for (const Model& model : models) attempt([&] { scenarios::read_media(file, model); });
  }
}

const Registered kTarget("media", read);

}  // namespace
}  // namespace mllmsim::fuzz
