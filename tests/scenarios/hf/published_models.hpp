// The values of published config.json files that matter here, with the parameters their authors'
// checkpoints have. Written out compactly; keys as the files have them.
#pragma once

#include <string>
#include <vector>

namespace mllmsim::test {

struct PublishedModel {
  std::string name;
  double parameters;  // of the checkpoint
  std::string config;
};

std::vector<PublishedModel> published_models();

}  // namespace mllmsim::test
