#include "scenarios/read/resolve.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <system_error>
#include <utility>

#include "scenarios/files/shipped_files.hpp"
#include "scenarios/tree/merge.hpp"

namespace mllmsim::scenarios {
namespace {

namespace fs = std::filesystem;

// A name is short for a table with that base.
Node as_table(const Node& written) {
  if (!written.is<std::string>()) return written;
  Node table;
  table.position = written.position;
  table.as<Node::Table>()["base"] = written;
  return table;
}

// Takes a member out of a table.
std::optional<Node> take(Node& table, const std::string& key) {
  if (!table.is<Node::Table>()) return std::nullopt;
  auto handle = table.as<Node::Table>().extract(key);
  if (handle.empty()) return std::nullopt;
  return std::move(handle.mapped());
}

void set_default_name(Node& table, const std::string& name) {
  if (!table.is<Node::Table>() || table.find("name")) return;
  Node& node = table.as<Node::Table>()["name"];
  node.value = name;
  node.position = table.position;
}

// A file's name is its model's or cluster's name, and that of parts that have none.
void set_default_names(Node& root, const std::string& name) {
  set_default_name(root, name);
  if (Node* llm = root.find("llm")) set_default_name(*llm, name);
  if (Node* encoders = root.find("encoders"); encoders && encoders->is<Node::Array>())
    for (Node& encoder : encoders->as<Node::Array>()) set_default_name(encoder, name);
}

bool replaces(const Node& written) {
  return written.is<std::string>() || written.find("base") || written.find("hf_config");
}

}  // namespace

fs::path directory_of(const Position& position) {
  return position.on_command_line() ? fs::path() : fs::path(position.file.str()).parent_path();
}

std::optional<Node> Resolver::model(const Node& written, const std::string& key) {
  return resolved(written, ShippedKind::model, key);
}

std::optional<Node> Resolver::cluster(const Node& written, const std::string& key) {
  return resolved(written, ShippedKind::cluster, key);
}

std::optional<Node> Resolver::software(const Node& written, const std::string& key) {
  return resolved(written, ShippedKind::software, key);
}

std::optional<Node> Resolver::resolved(const Node& written, ShippedKind kind,
                                       const std::string& key) {
  Node over = as_table(written);
  if (kind != ShippedKind::model) take(over, "evidence");  // for readers (files/evidence.hpp)
  Node result;
  result.position = over.position;
  const std::optional<Node> base = take(over, "base");
  if (base) {
    std::optional<Node> loaded = load(*base, kind, key);
    if (!loaded) return std::nullopt;
    result = std::move(*loaded);
  }
  const std::optional<Node> config =
      kind == ShippedKind::model ? take(over, "hf_config") : std::nullopt;
  if (config) {
    if (base) {
      problems_.add(config->position, key, "takes either a base or an hf_config, not both");
      return std::nullopt;
    }
    const std::optional<fs::path> file = config_file(*config, key);
    if (!file) return std::nullopt;
    try {
      result = read_hf_model(*file);
    } catch (const UserError& e) {
      problems_.add(e);
      return std::nullopt;
    }
  }
  if (kind == ShippedKind::model && over.is<Node::Table>()) {
    if (!lay_over(result, std::move(over), key)) return std::nullopt;
    return result;
  }
  return merged(std::move(result), std::move(over));
}

std::optional<Node> Resolver::load(const Node& reference, ShippedKind kind,
                                   const std::string& key) {
  if (!reference.is<std::string>()) {
    problems_.add(reference.position, key,
                  fmt::format("expected a name or a path, found {}", describe(reference)));
    return std::nullopt;
  }
  const auto& name = reference.as<std::string>();
  const fs::path from = directory_of(reference.position);
  const std::size_t problems = problems_.count();
  const std::shared_ptr<const Node> full =
      files_.resolved(fmt::format("{} {} {}", static_cast<int>(kind), from.string(), name),
                      [&]() -> std::optional<Node> {
                        std::optional<Node> loaded = load_file(reference, kind, from, key);
                        return problems_.count() == problems ? std::move(loaded) : std::nullopt;
                      });
  if (!full) return std::nullopt;
  return *full;
}

std::optional<Node> Resolver::load_file(const Node& reference, ShippedKind kind,
                                        const fs::path& from, const std::string& key) {
  const auto& name = reference.as<std::string>();
  const fs::path file = locate(name, kind, from).lexically_normal();
  std::error_code error;
  if (!fs::exists(file, error)) {
    problems_.add(reference.position, key, not_found(name, kind, file));
    return std::nullopt;
  }
  if (std::find(open_.begin(), open_.end(), file) != open_.end()) {
    problems_.add(reference.position, key,
                  fmt::format("{} is based on itself", file.filename().string()));
    return std::nullopt;
  }
  open_.push_back(file);
  std::optional<Node> result;
  try {
    result = resolved(files_.toml(file), kind, key);
  } catch (const UserError& e) {
    problems_.add(e);
  }
  open_.pop_back();
  if (result) set_default_names(*result, file.stem().string());
  return result;
}

// Lays what a model table says over the model it is based on.
bool Resolver::lay_over(Node& model, Node over, const std::string& key) {
  const std::optional<Node> llm = take(over, "llm");
  const std::optional<Node> encoders = take(over, "encoders");
  model = merged(std::move(model), std::move(over));
  bool right = true;
  if (llm) {
    std::optional<Node> full = part_over(model.find("llm"), *llm, ModelPart::llm, key + ".llm");
    right &= full.has_value();
    if (full) model.as<Node::Table>()["llm"] = std::move(*full);
    if (!encoders) check_encoders(model, *llm, key + ".llm");
  }
  if (encoders)
    right &= lay_encoders_over(model.as<Node::Table>()["encoders"], *encoders, key + ".encoders");
  return right;
}

// An LLM out of a multimodal config in a model without encoders is hardly what was meant.
void Resolver::check_encoders(const Node& model, const Node& llm, const std::string& key) {
  const Node* config = llm.find("hf_config");
  if (model.find("encoders") || !config || !config->is<std::string>()) return;
  if (is_multimodal_config(directory_of(config->position) / config->as<std::string>()))
    problems_.add(
        config->position, key + ".hf_config",
        "the config has a vision_config, which this leaves out; model = { hf_config = ... "
        "} takes the whole model, encoders = [] the LLM alone");
}

bool Resolver::lay_encoders_over(Node& encoders, Node over, const std::string& key) {
  const auto* below = std::get_if<Node::Array>(&encoders.value);
  bool right = true;
  const auto lay = [&](const Node* base, Node& element, const std::string& name) {
    std::optional<Node> full = part_over(base, element, ModelPart::encoder, name);
    right &= full.has_value();
    if (full) element = std::move(*full);
  };
  if (over.is<Node::Table>() && below) {  // [model.encoders.0]
    for (auto& [index, change] : over.as<Node::Table>()) {
      Node* base = encoders.find(index);
      const std::string name = fmt::format("{}.{}", key, index);
      if (base) {
        lay(base, change, name);
        *base = std::move(change);
      } else {
        problems_.add(change.position, name,
                      fmt::format("expected an index below {}", below->size()));
        right = false;
      }
    }
    return right;
  }
  if (auto* elements = std::get_if<Node::Array>(&over.value)) {
    const bool pairwise = below && below->size() == elements->size();
    for (std::size_t i = 0; i < elements->size(); ++i)
      lay(pairwise ? &(*below)[i] : nullptr, (*elements)[i], fmt::format("{}.{}", key, i));
  }
  encoders = std::move(over);
  return right;
}

// An llm or encoder as written, over the one below unless it names another.
std::optional<Node> Resolver::part_over(const Node* below, const Node& written, ModelPart which,
                                        const std::string& key) {
  std::optional<Node> full = part(written, which, key);
  if (!full || !below || replaces(written)) return full;
  return merged(*below, std::move(*full));
}

// One llm or encoder with its own base or hf_config, if it has one, filled in.
std::optional<Node> Resolver::part(const Node& written, ModelPart which, const std::string& key) {
  Node over = as_table(written);
  const std::optional<Node> base = take(over, "base");
  const std::optional<Node> config = take(over, "hf_config");
  if (base && config) {
    problems_.add(config->position, key, "takes either a base or an hf_config, not both");
    return std::nullopt;
  }
  if (base) {
    std::optional<Node> below = part_of_file(*base, which, key);
    if (!below) return std::nullopt;
    return merged(std::move(*below), std::move(over));
  }
  if (!config) return over;
  const std::optional<fs::path> file = config_file(*config, key);
  if (!file) return std::nullopt;
  try {
    return merged(read_hf_config(*file, which), std::move(over));
  } catch (const UserError& e) {
    problems_.add(e);
    return std::nullopt;
  }
}

std::optional<fs::path> Resolver::config_file(const Node& written, const std::string& key) {
  if (!written.is<std::string>()) {
    problems_.add(written.position, key + ".hf_config",
                  fmt::format("expected the path of a config.json, found {}", describe(written)));
    return std::nullopt;
  }
  const fs::path file = directory_of(written.position) / written.as<std::string>();
  std::error_code error;
  if (fs::exists(file, error)) return file;
  problems_.add(written.position, key + ".hf_config",
                fmt::format("no such file: {}", file.string()));
  return std::nullopt;
}

std::optional<Node> Resolver::part_of_file(const Node& reference, ModelPart which,
                                           const std::string& key) {
  std::optional<Node> model = load(reference, ShippedKind::model, key);
  if (!model) return std::nullopt;
  if (which == ModelPart::llm) {
    if (std::optional<Node> llm = take(*model, "llm")) return llm;
    problems_.add(reference.position, key,
                  fmt::format("{} is an encoder; it has no llm", describe(reference)));
    return std::nullopt;
  }
  Node* encoders = model->find("encoders");
  if (encoders && encoders->is<Node::Array>() && encoders->as<Node::Array>().size() == 1)
    return std::move(encoders->as<Node::Array>().front());
  problems_.add(reference.position, key,
                fmt::format("{} does not have exactly one encoder", describe(reference)));
  return std::nullopt;
}

}  // namespace mllmsim::scenarios
