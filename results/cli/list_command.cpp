// mllmsim list [what]: strategies with their options, shipped models, clusters and runs, keys of
// [software] with their defaults, data sheets of GPUs, a line each.
#include <fmt/format.h>

#include <iostream>

#include "cost_models/kernels/gpus.hpp"
#include "results/cli/command.hpp"
#include "scenarios/files/shipped_files.hpp"
#include "scenarios/read/software_reader.hpp"
#include "sim/base/errors.hpp"
#include "strategies/registry/registry.hpp"

namespace po = boost::program_options;

namespace mllmsim::cli {
namespace {

void print(const std::string& title, const std::vector<scenarios::ShippedFile>& files) {
  std::cout << title << "\n";
  for (const scenarios::ShippedFile& f : files) fmt::print("  {:<34} {}\n", f.name, f.description);
}

void print_strategies() {
  std::cout << "strategies\n";
  for (const Strategy& s : strategies()) {
    fmt::print("  {:<34} {}\n", s.name, s.description);
    for (const OptionSpec& o : s.options) {
      std::string choices;
      for (const std::string& c : o.choices) choices += (choices.empty() ? ": " : " | ") + c;
      fmt::print("    {:<32} {}{}\n", o.name, o.description, choices);
    }
  }
}

void print_settings() {
  std::cout << "settings (software.*: default, and where it comes from)\n";
  for (const scenarios::SoftwareSetting& s : scenarios::software_settings({}))
    fmt::print("  {:<38} {:<10} {}\n", s.key, s.value, s.source);
}

void print_gpus() {
  std::cout
      << "gpus (data sheets: TFLOP/s bf16, memory GB, GB/s, NVLink GB/s per direction, SMs)\n";
  for (const costs::DataSheet& s : costs::data_sheets())
    fmt::print("  {:<18} {:>6g} {:>4g} {:>5g} {:>4g} {:>4}  {}\n", s.name, s.gpu.peak.value / 1e12,
               static_cast<double>(s.memory.value) / 1e9, s.gpu.memory_bandwidth.value / 1e9,
               s.gpu.nvlink_bandwidth.value / 1e9, s.gpu.sms, s.gpu.from);
}

}  // namespace

int list_command(const Arguments& arguments) {
  const std::vector<std::pair<std::string, void (*)()>> sections = {
      {"strategies", print_strategies},
      {"models", [] { print("models", scenarios::shipped_models()); }},
      {"encoders", [] { print("encoders (parts for models)", scenarios::shipped_encoders()); }},
      {"clusters", [] { print("clusters", scenarios::shipped_clusters()); }},
      {"software",
       [] { print("software (framework generations)", scenarios::shipped_software()); }},
      {"settings", print_settings},
      {"gpus", print_gpus},
      {"published", [] { print("published (for validate)", scenarios::shipped_published()); }},
      {"runs", [] { print("runs", scenarios::shipped_runs()); }},
      {"data", [] { print("data sets (for pack)", scenarios::shipped_data_sets()); }},
  };
  po::variables_map values;
  std::vector<std::string> wanted;
  const char* usage =
      "usage: mllmsim list [strategies | models | encoders | clusters | software | settings | gpus "
      "| "
      "published | runs | data]\n";
  if (!parse(arguments, usage, po::options_description("options"), values, wanted)) return 0;
  for (const std::string& w : wanted) {
    const bool known =
        std::any_of(sections.begin(), sections.end(), [&](const auto& s) { return s.first == w; });
    if (!known)
      throw UserError("command line", w,
                      "expected strategies, models, encoders, clusters, software, settings, gpus, "
                      "published, runs or data");
  }
  for (const auto& [name, show] : sections)
    if (wanted.empty() || std::find(wanted.begin(), wanted.end(), name) != wanted.end()) show();
  std::fflush(stdout);
  return 0;
}

}  // namespace mllmsim::cli
