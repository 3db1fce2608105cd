// test_fuzz NAME FOLDER: a target on every input that is kept, without libFuzzer.
#include <algorithm>
#include <cstdio>
#include <exception>
#include <fstream>
#include <iterator>

#include "tests/fuzz/fuzz.hpp"

int main(int argc, char** argv) {
  namespace fs = std::filesystem;
  const auto* target = argc == 3 ? mllmsim::fuzz::find_target(argv[1]) : nullptr;
  if (!target) {
    std::fprintf(stderr, "usage: test_fuzz NAME FOLDER; NAME is one of tests/fuzz/targets\n");
    return 2;
  }
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(argv[2])) files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  int finds = 0;
  for (const fs::path& file : files) {
    std::printf("%s\n", file.c_str());  // the last one, if it ends the process
    std::fflush(stdout);
    std::ifstream in(file, std::ios::binary);
    const std::string bytes{std::istreambuf_iterator<char>(in), {}};
    try {
      mllmsim::fuzz::attempt([&] { target->read(bytes); });
    } catch (const std::exception& e) {
      std::printf("  %s\n", e.what());
      ++finds;
    }
  }
  std::printf("%zu inputs, %d finds\n", files.size(), finds);
  return finds > 0 || files.empty() ? 1 : 0;
}
