#include "tests/scenarios/support.hpp"

#include <unistd.h>
#include <atomic>
#include <fstream>

#include "sim/base/errors.hpp"
#include "strategies/registry/registry.hpp"

namespace mllmsim::test {
using namespace data;
using namespace scenarios;
namespace {

// A strategy with an option of every type, which plans nothing.
const bool registered = [] {
  register_strategy({"test-strategy",
                     "options of every type",
                     {{"flag", "a flag", false},
                      {"count", "a whole number", std::int64_t{3}, {}, {-5, 5}},
                      {"ratio", "a number", 0.5, {}, {0, 1}},
                      {"mode", "a choice", std::string("coarse"), {"coarse", "fine"}},
                      {"list", "whole numbers", std::vector<std::int64_t>{}, {}, {1, 9}, {0, 3}}},
                     [](const Job&, const CostContext&) { return Plan{}; }});
  return true;
}();

std::string without(std::string text, const std::string& part) {
  for (std::size_t at; (at = text.find(part)) != std::string::npos;) text.erase(at, part.size());
  return text;
}

}  // namespace

Directory::Directory() {
  static std::atomic<int> count = 0;
  path_ = std::filesystem::temp_directory_path() /
          ("mllmsim-test-" + std::to_string(getpid()) + "-" + std::to_string(count++));
  std::filesystem::create_directories(path_);
  write("gpu.json", "{}");
}

Directory::~Directory() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

std::filesystem::path Directory::write(const std::string& name, const std::string& text) const {
  std::ofstream(path_ / name, std::ios::binary) << text;
  return path_ / name;
}

const char* const kSmallRun = R"(description = "small"
calibration = "gpu.json"

[model.llm]
num_hidden_layers = 4
hidden_size = 64
num_attention_heads = 4
intermediate_size = 256
vocab_size = 1000
max_position_embeddings = 128

[[model.encoders]]
num_hidden_layers = 2
hidden_size = 32
num_attention_heads = 4
intermediate_size = 128
image_size = 8
patch_size = 2
pixel_shuffle = 0.5
projector = "mlp2"

[cluster]
nodes = 1
gpus_per_node = 8
gpu_memory = "80 GiB"
nvlink_bandwidth = "600 GB/s"
nics_per_node = 4
nic_bandwidth = "200 Gb/s"

[parallelism]
tensor_model_parallel_size = 2
pipeline_model_parallel_size = 2
micro_batch_size = 1
global_batch_size = 8

[data]
samples = 100
tokens_per_sample = 64
tiles_per_sample = 2

[strategy]
name = "test-strategy"
)";

Scenario read_text_scenario(const std::string& text, const std::vector<std::string>& overrides) {
  const Directory directory;
  return read_scenario(directory.write("run.toml", text), overrides);
}

std::string problems_in(const std::string& text, const std::vector<std::string>& overrides) {
  const Directory directory;
  try {
    read_scenario(directory.write("run.toml", text), overrides);
    return "";
  } catch (const UserError& e) {
    return without(e.what(), directory.path().string() + "/");
  }
}

std::string problems_with(const std::vector<std::string>& overrides) {
  return problems_in(kSmallRun, overrides);
}

}  // namespace mllmsim::test
