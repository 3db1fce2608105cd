#include "tests/fuzz/fuzz.hpp"

#include <stdlib.h>

#include <fstream>

#include "sim/base/errors.hpp"

namespace mllmsim::fuzz {
namespace {

namespace fs = std::filesystem;

std::vector<Target>& targets() {
  static std::vector<Target> all;
  return all;
}

struct Scratch {
  fs::path path;

  Scratch() {
    std::string name = (fs::temp_directory_path() / "mllmsim-fuzz-XXXXXX").string();
    check(::mkdtemp(name.data()) != nullptr, "no temporary directory");
    path = name;
  }
  ~Scratch() {
    std::error_code ignored;
    fs::remove_all(path, ignored);
  }
};

}  // namespace

Registered::Registered(std::string name, void (*read)(const std::string& bytes)) {
  targets().push_back({std::move(name), read});
}

const Target* find_target(std::string_view name) {
  for (const Target& target : targets())
    if (target.name == name) return &target;
  return nullptr;
}

void attempt(const std::function<void()>& reader) {
  try {
    reader();
  } catch (const UserError& e) {
    check(!e.problems().empty(), "an error without a problem");
  } catch (const EnvironmentError& e) {
    check(!std::string_view(e.what()).empty(), "an error without a reason");
  }
}

const fs::path& scratch() {
  static const Scratch directory;
  return directory.path;
}

fs::path scratch_file(const std::string& name, const std::string& bytes) {
  const fs::path file = scratch() / name;
  std::ofstream(file, std::ios::binary) << bytes;
  return file;
}

const char* const kSmallRun = R"(name = "small"
cluster = { base = "a100-80g-8x200", nodes = 1 }

[model.llm]
num_hidden_layers = 4
hidden_size = 512
num_attention_heads = 8
intermediate_size = 2048
vocab_size = 1000
max_position_embeddings = 512

[[model.encoders]]
num_hidden_layers = 2
hidden_size = 256
num_attention_heads = 8
intermediate_size = 1024
image_size = 56
patch_size = 14
pixel_shuffle = 0.5
projector = "mlp2"

[parallelism]
tensor_model_parallel_size = 2
pipeline_model_parallel_size = 2
micro_batch_size = 1
global_batch_size = 8

[data]
samples = 100
tokens_per_sample = 64
tiles_per_sample = 2
)";

}  // namespace mllmsim::fuzz
