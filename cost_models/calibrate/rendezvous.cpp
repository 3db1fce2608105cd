#include "cost_models/calibrate/rendezvous.hpp"

#include <chrono>
#include <filesystem>
#include <thread>

#include "sim/base/errors.hpp"
#include "sim/base/files.hpp"

namespace mllmsim::calibrate {
namespace {

std::string path_of(const Rendezvous& rendezvous, const std::string& name) {
  return rendezvous.file + "." + name;
}

}  // namespace

std::string exchange(const Rendezvous& rendezvous, const std::string& name,
                     const std::string& bytes) {
  const std::string path = path_of(rendezvous, name);
  if (rendezvous.node_rank == 0) {
    if (std::filesystem::exists(path))
      throw UserError("command line", "--rendezvous", path + " is left from an earlier run");
    write_file_atomically(path, bytes);
    return bytes;
  }
  using namespace std::chrono_literals;
  for (auto waited = 0ms; waited < 10min; waited += 100ms) {
    if (std::filesystem::exists(path)) return read_file(path, kSmallFile);
    std::this_thread::sleep_for(100ms);
  }
  throw EnvironmentError(path + ": node 0 has not written it in ten minutes");
}

void clean_up(const Rendezvous& rendezvous, const std::string& name) {
  std::error_code ignored;
  if (rendezvous.node_rank == 0) std::filesystem::remove(path_of(rendezvous, name), ignored);
}

}  // namespace mllmsim::calibrate
