// Models that are not known, by name.
#include <fmt/format.h>

#include "scenarios/hf/models.hpp"
#include "sim/base/errors.hpp"
#include "sim/base/text.hpp"

namespace mllmsim::scenarios {
namespace {

// Layers that no block here has.
const char* unknown_layers(const std::string& type) {
  for (const char* part :
       {"mamba", "jamba", "zamba", "bamba", "falcon_h1", "granitemoehybrid", "plamo2"})
    if (type.find(part) != std::string::npos) return "state-space layers (Mamba)";
  for (const char* part : {"kimi_linear", "olmo_hybrid"})
    if (type.find(part) != std::string::npos) return "linear attention (gated delta nets)";
  for (const char* part : {"rwkv", "minimax", "lfm2", "recurrent_gemma"})
    if (type.find(part) != std::string::npos) return "recurrent, linear or convolutional layers";
  for (const char* part : {"deepseek_v32", "deepseek_v4", "glm_moe_dsa"})
    if (type.find(part) != std::string::npos) return "sparse attention";
  return nullptr;
}

}  // namespace

void refuse_model_type(const ConfigObject& config, const std::string& found,
                       const std::vector<std::string>& known) {
  if (const char* layers = unknown_layers(found))
    throw UserError(config.file(), config.key("model_type"),
                    fmt::format("\"{}\" has {}, which are not modelled; expected {}",
                                found.substr(0, 60), layers, one_of(known)));
  throw UserError(
      config.file(), config.key("model_type"),
      fmt::format("expected {}, found {} (other models are written out in TOML){}", one_of(known),
                  found.empty() ? "none" : '"' + found.substr(0, 60) + '"',
                  did_you_mean(found, known)));
}

}  // namespace mllmsim::scenarios
