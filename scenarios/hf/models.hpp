// What the files of this folder offer each other.
#pragma once

#include <string>
#include <vector>

#include "scenarios/hf/part_table.hpp"

namespace mllmsim::scenarios {

// The part's table. `type`: used if the object has no model_type of its own. Throws UserError if
// the type is not known; other problems go to the object's.
PartTable read_text_model(ConfigObject& config, const std::string& type);
PartTable read_vision_model(ConfigObject& config, const std::string& type);

std::vector<std::string> text_model_types();
std::vector<std::string> vision_model_types();

[[noreturn]] void refuse_model_type(const ConfigObject& config, const std::string& found,
                                    const std::vector<std::string>& known);

}  // namespace mllmsim::scenarios
