// A fuzz target: bytes in, one of the program's own readers called with them.
//
// A reader may say that its input is wrong (UserError) or cannot be read (EnvironmentError).
// Whatever else it does is a find: another exception, a crash, a leak, undefined behaviour, too
// much time or memory. Targets are one .cpp each in targets/, named as the target; their inputs are
// kept in corpus/NAME. libfuzzer.cpp looks for new inputs, replay.cpp repeats those that are kept.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace mllmsim::fuzz {

struct Target {
  std::string name;
  void (*read)(const std::string& bytes);
};

// Registers itself; one at the end of each file in targets/.
struct Registered {
  Registered(std::string name, void (*read)(const std::string& bytes));
};

// Null if there is none of this name.
const Target* find_target(std::string_view name);

// Calls a reader; the two errors it may throw end here.
void attempt(const std::function<void()>& reader);

// A directory of this process for readers that take files; gone when the process ends.
const std::filesystem::path& scratch();
// Writes a file into it.
std::filesystem::path scratch_file(const std::string& name, const std::string& bytes);

// A small complete run on shipped calibrations, simulated in no time.
extern const std::string kSmallRun;

}  // namespace mllmsim::fuzz
