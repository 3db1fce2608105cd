#include "results/cli/streams.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <string>
#include <system_error>

#include "sim/base/errors.hpp"
#include "sim/base/text.hpp"

namespace mllmsim::cli {
namespace {

// 0, or the error.
int write_all(int descriptor, std::string_view text) {
  while (!text.empty()) {
    const ssize_t n = ::write(descriptor, text.data(), text.size());
    if (n < 0 && errno != EINTR) return errno;
    if (n > 0) text.remove_prefix(static_cast<std::size_t>(n));
  }
  return 0;
}

}  // namespace

void prepare_streams() {
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGXFSZ, SIG_IGN);
  // The lowest free descriptor is taken. That of stdout cannot be written to: who prints is told.
  for (const int descriptor : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
    if (::fcntl(descriptor, F_GETFD) < 0)
      ::open("/dev/null", descriptor == STDERR_FILENO ? O_WRONLY : O_RDONLY);
}

void print_data(std::string_view data) {
  const int error = ::isatty(STDOUT_FILENO) != 0 ? write_all(STDOUT_FILENO, printable_lines(data))
                                                 : write_all(STDOUT_FILENO, data);
  if (error == EPIPE) throw ReaderGone();
  if (error != 0)
    throw EnvironmentError(
        fmt::format("cannot write to standard output: {}", std::generic_category().message(error)));
}

void print_text(std::string_view text) { print_data(printable_lines(text)); }

void say(std::string_view text) { write_all(STDERR_FILENO, printable_lines(text) + "\n"); }

}  // namespace mllmsim::cli
