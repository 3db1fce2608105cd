#include "tests/scenarios/support.hpp"

#include <fstream>

#include "sim/base/errors.hpp"
#include "strategies/registry/registry.hpp"
#include "tests/small_run.hpp"

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

Directory::Directory() { write("gpu.json", "{}"); }

std::filesystem::path Directory::write(const std::string& name, const std::string& text) const {
  std::ofstream(path() / name, std::ios::binary) << text;
  return path() / name;
}

const std::string kSmallRun = R"(description = "small"
calibration = "gpu.json"

)" + kSmallModel + R"([cluster]
nodes = 1
gpus_per_node = 8
gpu_memory = "80 GiB"
nvlink_bandwidth = "600 GB/s"
nics_per_node = 4
nic_bandwidth = "200 Gb/s"

)" + kSmallTraining + R"([strategy]
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
