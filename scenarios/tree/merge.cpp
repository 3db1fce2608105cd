#include "scenarios/tree/merge.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "scenarios/tree/toml_parse.hpp"
#include "sim/base/text.hpp"

namespace mllmsim::scenarios {
namespace {

using Path = std::vector<std::string>;
constexpr std::size_t kDeepestPath = 16;

Path path_of(std::string_view dotted) {
  Path out;
  for (const std::string_view name : split(dotted, '.')) out.emplace_back(trimmed(name));
  return out;
}

struct Override {
  Path path;
  std::string key;  // the path, dotted
  Node value;

  // Names a strategy, whose options come after it whatever their order on the command line.
  bool names_strategy() const { return key == "strategy.name"; }
  std::size_t depth() const { return names_strategy() ? 1 : path.size(); }
};

// Two ways to say one thing: the one that is laid over the other counts.
constexpr std::array<std::pair<std::string_view, std::string_view>, 2> kAlternatives{
    {{"cluster.nodes", "cluster.gpus"},
     {"parallelism.global_batch_size", "parallelism.gradient_accumulation_steps"}}};

std::string last_name(std::string_view key) { return std::string(key.substr(key.rfind('.') + 1)); }

// A data set brings its own samples: what the file says of uniform ones gives way.
void drop_uniform_samples(Node::Table& data) {
  for (const char* key : {"samples", "tokens", "tokens_per_sample", "tiles_per_sample"}) {
    const auto it = data.find(key);
    if (it != data.end() && !it->second.position.on_command_line()) data.erase(it);
  }
}

// A name where a table is about to be changed: the table that the name is short for.
bool expand_name(Node& node, std::string_view key) {
  if (!node.is<std::string>()) return false;
  Node name = node;
  node.value = Node::Table{};
  auto& table = node.as<Node::Table>();
  if (key == "strategy") {
    table["name"] = std::move(name);
  } else if (key == "recompute") {
    table["encoder"] = name;
    table["llm"] = std::move(name);
  } else if (key == "model" || key == "cluster" || key == "software" || key == "model.llm" ||
             key.starts_with("model.encoders.")) {
    table["base"] = std::move(name);
  } else {
    node = std::move(name);
    return false;
  }
  return true;
}

void assign(Node& at, const std::string& last, const Override& o, Problems& problems) {
  if (at.is<Node::Array>()) {
    Node* element = at.find(last);
    if (element)
      *element = o.value;
    else
      problems.add(o.value.position, o.key,
                   fmt::format("there are only {} elements", at.as<Node::Array>().size()));
    return;
  }
  auto& table = at.as<Node::Table>();
  Node* old = at.find(last);
  Node* base = old ? old->find("base") : nullptr;
  const bool names_file = o.key == "model" || o.key == "cluster" || o.key == "software";
  if (base && names_file && o.value.is<std::string>()) {
    *base = o.value;
    return;
  }
  if (o.names_strategy() && !(old && old->value == o.value.value)) table.clear();
  if (o.key == "data.set") drop_uniform_samples(table);
  for (const auto& [one, other] : kAlternatives) {
    if (o.key == one) table.erase(last_name(other));
    if (o.key == other) table.erase(last_name(one));
  }
  table[last] = o.value;
}

void apply(Node& run, const Override& o, Problems& problems) {
  Node* at = &run;
  std::string key;
  for (std::size_t i = 0; i + 1 < o.path.size(); ++i) {
    key += (key.empty() ? "" : ".") + o.path[i];
    Node* next = at->find(o.path[i]);
    if (!next && at->is<Node::Table>()) {
      next = &at->as<Node::Table>()[o.path[i]];
      next->position = o.value.position;
    }
    const bool has_members =
        next && (next->is<Node::Table>() || next->is<Node::Array>() || expand_name(*next, key));
    if (!has_members) {
      problems.add(o.value.position, key,
                   next ? fmt::format("is {}, which has no \"{}\"", describe(*next), o.path[i + 1])
                        : "there is no such element");
      return;
    }
    at = next;
  }
  assign(*at, o.path.back(), o, problems);
}

// Nothing says which of two alternatives counts if both are set at once.
void check_alternatives(const std::vector<Override>& all, Problems& problems) {
  for (const auto& [one, other] : kAlternatives) {
    const auto first = std::ranges::find(all, one, &Override::key);
    const auto second = std::ranges::find(all, other, &Override::key);
    if (first != all.end() && second != all.end())
      problems.add(second->value.position, second->key,
                   fmt::format("{} says this as well: give one of the two", one));
  }
}

void apply_all(Node& run, std::vector<Override> all, Problems& problems) {
  check_alternatives(all, problems);
  std::stable_sort(all.begin(), all.end(),
                   [](const Override& a, const Override& b) { return a.depth() < b.depth(); });
  for (const Override& o : all) apply(run, o, problems);
}

// Every value of a tree of tables, with its dotted key.
void collect(const Node& node, const std::string& key, std::vector<Override>& out) {
  if (!node.is<Node::Table>()) {
    out.push_back({path_of(key), key, node});
    return;
  }
  for (const auto& [name, value] : node.as<Node::Table>())
    collect(value, key.empty() ? name : key + "." + name, out);
}

}  // namespace

std::string in_full(std::string key) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 9> kShort{
      {{"tp", "tensor_model_parallel_size"},
       {"pp", "pipeline_model_parallel_size"},
       {"vpp", "virtual_pipeline_stages"},
       {"cp", "context_parallel_size"},
       {"ep", "expert_model_parallel_size"},
       {"etp", "expert_tensor_parallel_size"},
       {"dp", "data_parallel_size"},
       {"mbs", "micro_batch_size"},
       {"gbs", "global_batch_size"}}};
  for (const auto& [name, full] : kShort)
    if (key == name) return fmt::format("parallelism.{}", full);
  return key;
}

Node merged(Node base, Node over) {
  if (!base.is<Node::Table>() || !over.is<Node::Table>()) return over;
  auto& below = base.as<Node::Table>();
  for (auto& [name, value] : over.as<Node::Table>()) {
    const auto it = below.find(name);
    if (it == below.end())
      below.emplace(name, std::move(value));
    else
      it->second = merged(std::move(it->second), std::move(value));
  }
  base.position = over.position;
  return base;
}

void apply_overrides(Node& run, const std::vector<std::string>& overrides, Problems& problems) {
  std::vector<Override> all;
  for (const std::string& text : overrides) {
    const Position position{std::string(kCommandLine) + text, 0, 0};
    const std::size_t equals = text.find('=');
    const std::string key = in_full(std::string(trimmed(std::string_view(text).substr(0, equals))));
    const Path path = path_of(key);
    const bool named = std::none_of(path.begin(), path.end(),
                                    [](const std::string& name) { return name.empty(); });
    if (equals == std::string::npos || !named || path.size() > kDeepestPath) {
      problems.add(position, "", "expected key=value, such as cluster.nodes=4");
      continue;
    }
    const std::string value(trimmed(std::string_view(text).substr(equals + 1)));
    all.push_back({path, key, parse_value(value, position)});
  }
  apply_all(run, std::move(all), problems);
}

void apply_changes(Node& run, const Node& changes, Problems& problems) {
  std::vector<Override> all;
  collect(changes, "", all);
  apply_all(run, std::move(all), problems);
}

}  // namespace mllmsim::scenarios
