// Ctrl-C and a scheduler's SIGTERM as a question that long work asks now and then. The first signal
// asks to stop; a second one ends the program at once.
#pragma once

namespace mllmsim::cli {

class Interrupt {
 public:
  Interrupt();
  ~Interrupt();
  Interrupt(const Interrupt&) = delete;
  Interrupt& operator=(const Interrupt&) = delete;

  static bool requested();
  static int exit_code();  // 130 after Ctrl-C, 143 after SIGTERM, as shells have it
};

}  // namespace mllmsim::cli
