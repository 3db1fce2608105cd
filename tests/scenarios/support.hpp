// What the scenario tests share: files in a directory of their own, and reading a run from text.
#pragma once

#include <string>
#include <vector>

#include "scenarios/read/scenario.hpp"

namespace mllmsim::test {
using namespace data;
using namespace scenarios;

// A directory that lives as long as the object. It holds a calibration, "gpu.json", since every run
// with a cost model must name one that exists.
class Directory {
 public:
  Directory();
  ~Directory();
  Directory(const Directory&) = delete;
  Directory& operator=(const Directory&) = delete;

  std::filesystem::path write(const std::string& name, const std::string& text) const;
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

// A small complete run: 8 GPUs, tp 2, pp 2, dp 2; 2 + 4 layers. Every test changes a little of it.
extern const char* const kSmallRun;

Scenario read_text_scenario(const std::string& text,
                            const std::vector<std::string>& overrides = {});

// All problems, a line each, with the directory's name cut off; "" if there are none.
std::string problems_in(const std::string& text, const std::vector<std::string>& overrides = {});
std::string problems_with(const std::vector<std::string>& overrides);  // of kSmallRun

}  // namespace mllmsim::test
