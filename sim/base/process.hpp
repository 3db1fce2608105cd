// Runs another program to its end, without a shell and without pipes: its input, output and
// complaints are unnamed temporary files. So no text reaches a shell, neither side waits for the
// other to read, no SIGPIPE ends us if it dies, and a failure leaves nothing behind.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "sim/base/errors.hpp"

namespace mllmsim {

struct ProcessEnd {
  int exit_code = 0;     // meaningless if a signal ended it
  int signal = 0;        // 0: it ended by itself
  std::string out, err;  // all it wrote to stdout and stderr

  bool ok() const { return exit_code == 0 && signal == 0; }
};

// There is no such program: callers say what to install.
class ProgramNotFound : public EnvironmentError {
 public:
  using EnvironmentError::EnvironmentError;
};

// `command` is the program, looked for on the PATH unless it has a slash, and its arguments;
// `input` is what it reads from stdin. Throws ProgramNotFound, or EnvironmentError if it cannot be
// run.
ProcessEnd run_process(const std::vector<std::string>& command, std::string_view input = "");

}  // namespace mllmsim
