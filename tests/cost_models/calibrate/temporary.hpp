// A directory that goes when the test does.
#pragma once

#include <stdlib.h>

#include <filesystem>
#include <string>

namespace mllmsim::calibrate {
using namespace costs;

struct TemporaryDirectory {
  TemporaryDirectory() {
    std::string pattern = (std::filesystem::temp_directory_path() / "calibrate.XXXXXX").string();
    path = ::mkdtemp(pattern.data());
  }
  ~TemporaryDirectory() { std::filesystem::remove_all(path); }
  TemporaryDirectory(const TemporaryDirectory&) = delete;
  TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;

  std::filesystem::path path;
};

}  // namespace mllmsim::calibrate
