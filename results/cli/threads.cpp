#include "results/cli/threads.hpp"

#include "results/cli/command.hpp"

namespace po = boost::program_options;

namespace mllmsim::cli {

void add_threads_option(po::options_description& options) {
  options.add_options()("threads,j", po::value<std::string>(),
                        "threads to use (default: all cores); results do not depend on it");
}

std::optional<std::size_t> threads_of(const po::variables_map& values) {
  constexpr std::size_t kMostThreads = 4096;
  return count_of(values, "threads", kMostThreads);
}

std::unique_ptr<ThreadLimit> limit_threads(const po::variables_map& values) {
  const auto threads = threads_of(values);
  return threads ? std::make_unique<ThreadLimit>(*threads) : nullptr;
}

}  // namespace mllmsim::cli
