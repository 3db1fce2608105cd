// mllmsim list [what]: strategies with their options, shipped models, clusters and runs, keys of
// [software] with their defaults, data sheets of GPUs, a line each.
#include <fmt/format.h>

#include <algorithm>

#include "cost_models/kernels/gpus.hpp"
#include "results/cli/command.hpp"
#include "results/cli/streams.hpp"
#include "scenarios/files/evidence.hpp"
#include "scenarios/files/shipped_files.hpp"
#include "scenarios/read/software_reader.hpp"
#include "sim/base/errors.hpp"
#include "strategies/registry/registry.hpp"

namespace po = boost::program_options;

namespace mllmsim::cli {
namespace {

std::string files_text(const std::string& title, const std::vector<scenarios::ShippedFile>& files) {
  std::string out = title + "\n";
  for (const scenarios::ShippedFile& f : files)
    out += fmt::format("  {:<34} {}\n", f.name, f.description);
  return out;
}

std::string strategies_text() {
  std::string out = "strategies\n";
  for (const Strategy& s : strategies()) {
    out += fmt::format("  {:<34} {}\n", s.name, s.description);
    for (const OptionSpec& o : s.options) {
      std::string choices;
      for (const std::string& c : o.choices) choices += (choices.empty() ? ": " : " | ") + c;
      out += fmt::format("    {:<32} {}{}\n", o.name, o.description, choices);
    }
  }
  return out;
}

std::string settings_text() {
  std::string out = "settings (software.*: default, and where it comes from)\n";
  for (const scenarios::SoftwareSetting& s : scenarios::software_settings({}))
    out += fmt::format("  {:<38} {:<10} {}\n", s.key, s.value, s.source);
  out += "evidence (what each constant of a software or cluster file rests on)\n";
  for (const scenarios::Evidence& e : scenarios::shipped_evidence())
    out += fmt::format("  {:<34} {:<38} {:<12} {}\n", e.file, e.key, e.value,
                       e.text.empty() ? "not said" : e.text);
  return out;
}

std::string gpus_text() {
  std::string out =
      "gpus (data sheets: TFLOP/s bf16, memory GB, GB/s, NVLink GB/s per direction, SMs)\n";
  for (const costs::DataSheet& s : costs::data_sheets())
    out += fmt::format("  {:<18} {:>6g} {:>4g} {:>5g} {:>4g} {:>4}  {}\n", s.name,
                       s.gpu.peak.value / 1e12, static_cast<double>(s.memory.value) / 1e9,
                       s.gpu.memory_bandwidth.value / 1e9, s.gpu.nvlink_bandwidth.value / 1e9,
                       s.gpu.sms, s.gpu.from);
  return out;
}

}  // namespace

int list_command(const Arguments& arguments) {
  const std::vector<std::pair<std::string, std::string (*)()>> sections = {
      {"strategies", strategies_text},
      {"models", [] { return files_text("models", scenarios::shipped_models()); }},
      {"encoders",
       [] { return files_text("encoders (parts for models)", scenarios::shipped_encoders()); }},
      {"clusters", [] { return files_text("clusters", scenarios::shipped_clusters()); }},
      {"software",
       [] {
         return files_text("software (framework generations)", scenarios::shipped_software());
       }},
      {"settings", settings_text},
      {"gpus", gpus_text},
      {"published",
       [] { return files_text("published (for validate)", scenarios::shipped_published()); }},
      {"runs", [] { return files_text("runs", scenarios::shipped_runs()); }},
      {"data",
       [] {
         return files_text("data sets (for data.set and pack)", scenarios::shipped_data_sets()) +
                files_text("pictures (for data.set)", scenarios::shipped_pictures());
       }},
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
    if (wanted.empty() || std::find(wanted.begin(), wanted.end(), name) != wanted.end())
      print_text(show());
  return 0;
}

}  // namespace mllmsim::cli
