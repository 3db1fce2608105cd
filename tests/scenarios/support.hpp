// What the scenario tests share: files in a directory of their own, and reading a run from text.
#pragma once

#include <string>
#include <vector>

#include "scenarios/read/scenario.hpp"
#include "tests/temporary_directory.hpp"

namespace mllmsim::test {
using namespace data;
using namespace scenarios;

// A directory that lives as long as the object. It holds a calibration, "gpu.json", since every run
// with a cost model must name one that exists.
class Directory : public TemporaryDirectory {
 public:
  Directory();
  std::filesystem::path write(const std::string& name, const std::string& text) const;
};

// A small complete run: 8 GPUs, tp 2, pp 2, dp 2; 2 + 4 layers. Every test changes a little of it.
extern const std::string kSmallRun;

Scenario read_text_scenario(const std::string& text,
                            const std::vector<std::string>& overrides = {});

// All problems, a line each, with the directory's name cut off; "" if there are none.
std::string problems_in(const std::string& text, const std::vector<std::string>& overrides = {});
std::string problems_with(const std::vector<std::string>& overrides);  // of kSmallRun

}  // namespace mllmsim::test
