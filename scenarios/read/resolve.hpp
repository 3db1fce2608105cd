// Replaces every name in a run by what it stands for, so that one tree says everything.
//
//   model = "internvl-6b-20b"              the file's tree
//   [model] base = "internvl-6b-20b" ...   the same, with the other keys laid over it (merge.hpp)
//   llm = "internlm2-20b"                  the llm of that model file; also { base = ... }
//   encoders = ["internvit-6b-448"]        the encoder of that model file; also { base = ... }
//   model = { hf_config = "config.json" }  Hugging Face's config: LLM, encoder and projector
//   llm = { hf_config = "config.json" }    one part of such a config; other keys are laid over it
//   cluster = "a100-80g-4x200"             as model
//   software = "megatron-2021"             as model
//
// Names are shipped files, paths are relative to the file that writes them. An llm or encoder that
// names its own base or hf_config replaces the one of the model's base; otherwise it changes it. A
// list of encoders changes the base's one by one if both are equally long, and replaces them if
// not; [model.encoders.0] changes the first alone.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "scenarios/files/input_files.hpp"
#include "scenarios/files/shipped_files.hpp"
#include "scenarios/hf/hf_config.hpp"
#include "scenarios/tree/node.hpp"
#include "scenarios/tree/problems.hpp"

namespace mllmsim::scenarios {

class Resolver {
 public:
  Resolver(Problems& problems, InputFiles& files) : problems_(problems), files_(files) {}

  // Null after a problem. The result has no base, hf_config or names of files left in it.
  std::optional<Node> model(const Node& written, const std::string& key);
  std::optional<Node> cluster(const Node& written, const std::string& key);
  std::optional<Node> software(const Node& written, const std::string& key);

 private:
  std::optional<Node> resolved(const Node& written, ShippedKind kind, const std::string& key);
  std::optional<Node> load(const Node& reference, ShippedKind kind, const std::string& key);
  std::optional<Node> load_file(const Node& reference, ShippedKind kind,
                                const std::filesystem::path& from, const std::string& key);
  std::optional<std::filesystem::path> config_file(const Node& written, const std::string& key);
  void check_encoders(const Node& model, const Node& llm, const std::string& key);
  bool lay_over(Node& model, Node over, const std::string& key);
  bool lay_encoders_over(Node& encoders, Node over, const std::string& key);
  std::optional<Node> part_over(const Node* below, const Node& written, ModelPart which,
                                const std::string& key);
  std::optional<Node> part(const Node& written, ModelPart which, const std::string& key);
  std::optional<Node> part_of_file(const Node& reference, ModelPart which, const std::string& key);

  Problems& problems_;
  InputFiles& files_;
  std::vector<std::filesystem::path> open_;  // files being resolved, to notice circles
};

// The directory that relative paths written at this position start from.
std::filesystem::path directory_of(const Position& position);

}  // namespace mllmsim::scenarios
