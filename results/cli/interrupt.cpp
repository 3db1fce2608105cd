#include "results/cli/interrupt.hpp"

#include <csignal>
#include <initializer_list>

namespace mllmsim::cli {
namespace {

// A handler may touch nothing else; the one global of the program.
volatile std::sig_atomic_t received = 0;

void remember(int signal) { received = signal; }

void handle(void (*handler)(int)) {
  struct sigaction action {};
  action.sa_handler = handler;
  action.sa_flags = static_cast<int>(SA_RESETHAND | SA_RESTART);  // the second one ends us
  for (const int signal : {SIGINT, SIGTERM}) ::sigaction(signal, &action, nullptr);
}

}  // namespace

Interrupt::Interrupt() {
  received = 0;
  handle(remember);
}

Interrupt::~Interrupt() { handle(SIG_DFL); }

bool Interrupt::requested() { return received != 0; }

int Interrupt::exit_code() { return 128 + received; }

}  // namespace mllmsim::cli
