#include "cost_models/calibrate/scenario_shapes.hpp"

#include <cstdio>
#include <cstdlib>
#include <filesystem>

#include "cost_models/calibrate/plan.hpp"
#include "sim/base/errors.hpp"
#include "sim/base/process.hpp"

namespace mllmsim::calibrate {
namespace fs = std::filesystem;
namespace {

// A directory of our own that goes away again.
struct TemporaryDirectory {
  TemporaryDirectory() {
    std::string name = (fs::temp_directory_path() / "mllmsim-shapes-XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr)
      throw EnvironmentError("cannot make a temporary directory: " + name);
    path = name;
  }
  ~TemporaryDirectory() {
    std::error_code ignored;
    fs::remove_all(path, ignored);
  }
  fs::path path;
};

}  // namespace

std::vector<Task> scenario_shapes(const std::string& scenario) {
  const fs::path simulator = fs::read_symlink("/proc/self/exe").parent_path() / "mllmsim";
  if (!fs::exists(simulator))
    throw EnvironmentError("--scenario needs the simulator: there is no " + simulator.string());
  const TemporaryDirectory directory;
  const fs::path shapes = directory.path / "shapes.jsonl";
  const ProcessEnd end = run_process(
      {simulator.string(), "calibrate", "gaps", scenario, "--all", "--out", shapes.string()});
  std::fputs(end.err.c_str(), stderr);
  if (end.exit_code == 2)
    throw UserError("command line", "--scenario", "mllmsim cannot use " + scenario);
  if (!end.ok()) throw EnvironmentError("cannot run " + simulator.string());
  return read_shapes(shapes);
}

}  // namespace mllmsim::calibrate
