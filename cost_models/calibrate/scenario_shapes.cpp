#include "cost_models/calibrate/scenario_shapes.hpp"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>

#include "cost_models/calibrate/plan.hpp"
#include "sim/base/errors.hpp"

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

// Its standard output is dropped, its errors are seen. The exit code, 127 if it could not start.
int run_quietly(const fs::path& program, std::vector<std::string> arguments) {
  std::vector<char*> argv;
  for (std::string& a : arguments) argv.push_back(a.data());
  argv.push_back(nullptr);
  const pid_t child = ::fork();
  if (child == 0) {
    const int null = ::open("/dev/null", O_WRONLY);
    if (null >= 0) ::dup2(null, STDOUT_FILENO);
    ::execv(program.c_str(), argv.data());
    ::_exit(127);
  }
  int status = 0;
  if (child < 0 || ::waitpid(child, &status, 0) < 0) return 127;
  return WIFEXITED(status) ? WEXITSTATUS(status) : 127;
}

}  // namespace

std::vector<Task> scenario_shapes(const std::string& scenario) {
  const fs::path simulator = fs::read_symlink("/proc/self/exe").parent_path() / "mllmsim";
  if (!fs::exists(simulator))
    throw EnvironmentError("--scenario needs the simulator: there is no " + simulator.string());
  const TemporaryDirectory directory;
  const fs::path shapes = directory.path / "shapes.jsonl";
  const int code = run_quietly(
      simulator, {"mllmsim", "calibrate", "gaps", scenario, "--all", "--out", shapes.string()});
  if (code == 2) throw UserError("command line", "--scenario", "mllmsim cannot use " + scenario);
  if (code != 0) throw EnvironmentError("cannot run " + simulator.string());
  return read_shapes(shapes);
}

}  // namespace mllmsim::calibrate
