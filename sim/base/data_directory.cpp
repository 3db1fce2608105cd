#include "sim/base/data_directory.hpp"

#include <cstdlib>
#include <system_error>

namespace mllmsim {

namespace fs = std::filesystem;

namespace {

fs::path& named_directory() {
  static fs::path directory = MLLMSIM_SOURCE_DIR;
  return directory;
}

// Beside the program, if it was installed; else empty.
fs::path installed_directory() {
  std::error_code error;
  const fs::path program = fs::read_symlink("/proc/self/exe", error);
  fs::path installed = program.parent_path().parent_path() / "share" / "mllmsim";
  return !error && fs::is_directory(installed, error) ? installed : fs::path{};
}

}  // namespace

bool use_data_directory(fs::path directory) {
  named_directory() = std::move(directory);
  return true;
}

fs::path data_directory() {
  if (const char* set = std::getenv("MLLMSIM_DATA"); set && *set) return set;
  static const fs::path installed = installed_directory();
  return installed.empty() ? named_directory() : installed;
}

}  // namespace mllmsim
