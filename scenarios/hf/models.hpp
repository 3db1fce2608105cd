// What the files of this folder offer each other.
#pragma once

#include <string>
#include <vector>

#include "scenarios/hf/part_table.hpp"

namespace mllmsim::scenarios {

inline constexpr std::int64_t kMostLayers = 10'000;

// The part's table. `type`: used if the object has no model_type of its own. Throws UserError if
// the type is not known; other problems go to the object's.
PartTable read_text_model(ConfigObject& config, const std::string& type);
PartTable read_vision_model(ConfigObject& config, const std::string& type);

std::vector<std::string> text_model_types();
std::vector<std::string> vision_model_types();

// What families with recurrences have beyond numbers and flags.
void qwen3_next_rest(ConfigObject& config, PartTable& out);
void qwen3_5_rest(ConfigObject& config, PartTable& out);
void qwen3_5_moe_rest(ConfigObject& config, PartTable& out);
void nemotron_h_rest(ConfigObject& config, PartTable& out);
void mamba2_rest(ConfigObject& config, PartTable& out);

[[noreturn]] void refuse_model_type(const ConfigObject& config, const std::string& found,
                                    const std::vector<std::string>& known);

}  // namespace mllmsim::scenarios
