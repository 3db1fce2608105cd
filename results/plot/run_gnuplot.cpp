#include "results/plot/run_gnuplot.hpp"

#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <memory>
#include <system_error>

#include "sim/base/errors.hpp"

namespace mllmsim::plot {
namespace {

[[noreturn]] void fail(const char* what, int error) {
  throw EnvironmentError(fmt::format("{}: {}", what, std::generic_category().message(error)));
}

// A file without a name, gone when closed.
class Scratch {
 public:
  explicit Scratch(const std::string& text = "") : file_(std::tmpfile(), &std::fclose) {
    const bool ok = file_ && std::fwrite(text.data(), 1, text.size(), file_.get()) == text.size() &&
                    std::fflush(file_.get()) == 0;
    if (!ok) fail("cannot write a temporary file", errno);
    std::rewind(file_.get());
  }
  int descriptor() const { return ::fileno(file_.get()); }
  std::string contents() {
    std::rewind(file_.get());
    std::string out;
    std::array<char, 1 << 16> block;
    while (const std::size_t n = std::fread(block.data(), 1, block.size(), file_.get()))
      out.append(block.data(), n);
    if (std::ferror(file_.get())) fail("cannot read a temporary file", errno);
    return out;
  }

 private:
  std::unique_ptr<std::FILE, int (*)(std::FILE*)> file_;
};

// Waits for it to end and returns its status as of waitpid.
int spawn_and_wait(const Scratch& in, const Scratch& out, const Scratch& err) {
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_adddup2(&actions, in.descriptor(), STDIN_FILENO);
  ::posix_spawn_file_actions_adddup2(&actions, out.descriptor(), STDOUT_FILENO);
  ::posix_spawn_file_actions_adddup2(&actions, err.descriptor(), STDERR_FILENO);
  // -d: not what ~/.gnuplot says.
  std::array<char*, 3> arguments{const_cast<char*>("gnuplot"), const_cast<char*>("-d"), nullptr};
  pid_t child = 0;
  const int error = ::posix_spawnp(&child, "gnuplot", &actions, nullptr, arguments.data(), environ);
  ::posix_spawn_file_actions_destroy(&actions);
  if (error == ENOENT)
    throw EnvironmentError(
        "plots need gnuplot, which is not on the PATH: install it, "
        "for example with apt-get install gnuplot-nox");
  if (error != 0) fail("cannot run gnuplot", error);
  int status = 0;
  while (::waitpid(child, &status, 0) < 0)
    if (errno != EINTR) fail("cannot wait for gnuplot", errno);
  return status;
}

}  // namespace

std::string run_gnuplot(const std::string& script) {
  Scratch in(script), out, err;
  const int status = spawn_and_wait(in, out, err);
  if (WIFSIGNALED(status))
    throw EnvironmentError(fmt::format("gnuplot was ended by signal {}", WTERMSIG(status)));
  if (WEXITSTATUS(status) != 0)
    throw EnvironmentError(fmt::format("gnuplot failed: {}", err.contents()));
  return out.contents();
}

}  // namespace mllmsim::plot
