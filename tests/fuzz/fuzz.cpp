#include "tests/fuzz/fuzz.hpp"

#include <fstream>

#include "sim/base/errors.hpp"
#include "tests/small_run.hpp"
#include "tests/temporary_directory.hpp"

namespace mllmsim::fuzz {
namespace {

namespace fs = std::filesystem;

std::vector<Target>& targets() {
  static std::vector<Target> all;
  return all;
}

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
  static const TemporaryDirectory directory;
  return directory.path();
}

fs::path scratch_file(const std::string& name, const std::string& bytes) {
  const fs::path file = scratch() / name;
  std::ofstream(file, std::ios::binary) << bytes;
  return file;
}

const std::string kSmallRun = R"(name = "small"
cluster = { base = "a100-80g-8x200", nodes = 1 }

)" + kSmallModel + kSmallTraining;

}  // namespace mllmsim::fuzz
