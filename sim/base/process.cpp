#include "sim/base/process.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <memory>
#include <system_error>

namespace mllmsim {
namespace {

[[noreturn]] void process_failed(const std::string& what, int error) {
  throw EnvironmentError(fmt::format("{}: {}", what, std::generic_category().message(error)));
}

// A file without a name, gone when closed. Not inherited but where the child is given it.
class Scratch {
 public:
  explicit Scratch(std::string_view text = "") : file_(std::tmpfile(), &std::fclose) {
    const bool ok = file_ && ::fcntl(descriptor(), F_SETFD, FD_CLOEXEC) == 0 &&
                    std::fwrite(text.data(), 1, text.size(), file_.get()) == text.size() &&
                    std::fflush(file_.get()) == 0;
    if (!ok) process_failed("cannot write a temporary file", errno);
    std::rewind(file_.get());
  }
  int descriptor() const { return ::fileno(file_.get()); }
  std::string contents() {
    std::rewind(file_.get());
    std::string out;
    std::array<char, 1 << 16> block;
    while (const std::size_t n = std::fread(block.data(), 1, block.size(), file_.get()))
      out.append(block.data(), n);
    if (std::ferror(file_.get())) process_failed("cannot read a temporary file", errno);
    return out;
  }

 private:
  std::unique_ptr<std::FILE, int (*)(std::FILE*)> file_;
};

pid_t spawn(const std::vector<std::string>& command, const Scratch& in, const Scratch& out,
            const Scratch& err) {
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_adddup2(&actions, in.descriptor(), STDIN_FILENO);
  ::posix_spawn_file_actions_adddup2(&actions, out.descriptor(), STDOUT_FILENO);
  ::posix_spawn_file_actions_adddup2(&actions, err.descriptor(), STDERR_FILENO);
  posix_spawnattr_t attributes;  // we may ignore SIGPIPE; the child does as it is used to
  ::posix_spawnattr_init(&attributes);
  sigset_t usual;
  ::sigemptyset(&usual);
  ::sigaddset(&usual, SIGPIPE);
  ::posix_spawnattr_setsigdefault(&attributes, &usual);
  ::posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGDEF);
  std::vector<char*> arguments;  // which spawning does not change
  for (const std::string& word : command) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  pid_t child = 0;
  const int error =
      ::posix_spawnp(&child, arguments[0], &actions, &attributes, arguments.data(), environ);
  ::posix_spawnattr_destroy(&attributes);
  ::posix_spawn_file_actions_destroy(&actions);
  if (error == ENOENT) throw ProgramNotFound(fmt::format("there is no program {}", command[0]));
  if (error != 0) process_failed("cannot run " + command[0], error);
  return child;
}

}  // namespace

ProcessEnd run_process(const std::vector<std::string>& command, std::string_view input) {
  check(!command.empty(), "a command has a program");
  Scratch in(input), out, err;
  const pid_t child = spawn(command, in, out, err);
  int status = 0;
  while (::waitpid(child, &status, 0) < 0)
    if (errno != EINTR) process_failed("cannot wait for " + command[0], errno);
  ProcessEnd end;
  if (WIFSIGNALED(status))
    end.signal = WTERMSIG(status);
  else
    end.exit_code = WEXITSTATUS(status);
  end.out = out.contents();
  end.err = err.contents();
  return end;
}

}  // namespace mllmsim
