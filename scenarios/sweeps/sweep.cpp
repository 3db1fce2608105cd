#include "scenarios/sweeps/sweep.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "scenarios/sweeps/sweep_values.hpp"
#include "scenarios/tree/merge.hpp"
#include "scenarios/tree/problems.hpp"
#include "scenarios/tree/toml_reader.hpp"
#include "sim/base/text.hpp"
#include "strategies/registry/registry.hpp"

namespace mllmsim::scenarios {
namespace {

constexpr std::size_t kMostPoints = 10'000'000;
constexpr const char* kStrategyKey = "strategy.name";

using Values = std::vector<Node>;

// Tables inside [sweep.vary] are dotted keys: a.b = [..] and "a.b" = [..] mean the same.
template <class Use>
void for_each_leaf(const Node& node, const std::string& key, Use use) {
  if (!node.is<Node::Table>()) return use(key, node);
  for (const auto& [name, child] : node.as<Node::Table>())
    for_each_leaf(child, key.empty() ? name : key + "." + name, use);
}

class SweepReader {
 public:
  explicit SweepReader(const Node& run) {
    if (const Node* table = run.find("sweep")) read_table(*table);
  }

  void vary(const std::string& text) {
    const Position position{std::string(kCommandLine) + "--vary " + text, 0, 0};
    const std::size_t equals = text.find('=');
    const std::string key = in_full(std::string(trimmed(std::string_view(text).substr(0, equals))));
    if (equals == std::string::npos || key.empty())
      return problems_.add(position, "", "expected key=values, such as cluster.nodes=4..64*2");
    if (!on_command_line_.emplace(key, true).second)
      return problems_.add(position, key, "is given twice");
    guarded([&] { grid_[key] = listed_values(text.substr(equals + 1), position); });
  }

  void set_strategies(const std::string& text) {
    Node written;
    written.position = {std::string(kCommandLine) + "--strategies " + text, 0, 0};
    written.value = Node::Array{};
    if (text == "all")
      written.value = text;
    else
      guarded([&] { written.value = listed_values(text, written.position); });
    read_strategies(written, "--strategies");
  }

  Sweep finish() {
    if (strategies_ && (grid_.contains(kStrategyKey) || grid_.contains("strategy")))
      problems_.add(strategies_->front().position, kStrategyKey,
                    "vary it or give strategies, not both");
    if (points_.keys.size() == 1 && !grid_.contains(points_.keys.front())) {  // just a grid
      for (auto& row : points_.values)
        grid_[points_.keys.front()].push_back(std::move(row.front()));
      points_ = {};
    }
    for (const std::string& key : points_.keys)
      if (grid_.contains(key)) problems_.add(points_position_, key, "is in points and in vary");
    problems_.throw_if_any();
    Sweep sweep;
    if (!points_.values.empty()) sweep.axes.push_back(std::move(points_));
    for (auto& [key, values] : grid_) add_axis(sweep, key, std::move(values));
    if (strategies_) add_axis(sweep, kStrategyKey, std::move(*strategies_));
    if (sweep.axes.empty())
      throw UserError("command line", "",
                      "nothing varies: give --vary key=values, --strategies, or a [sweep] table");
    double points = 1;  // which holds any product
    for (const SweepAxis& axis : sweep.axes) points *= static_cast<double>(axis.values.size());
    if (points > static_cast<double>(kMostPoints))
      throw UserError("command line", "",
                      fmt::format("{:.15g} points, at most {} in one sweep; vary less at once",
                                  points, kMostPoints));
    return sweep;
  }

 private:
  template <class Do>
  void guarded(Do act) {
    try {
      act();
    } catch (const UserError& e) {
      problems_.add(e);
    }
  }

  static void add_axis(Sweep& sweep, const std::string& key, Values values) {
    SweepAxis axis{{key}, {}};
    std::set<std::string> seen;  // a value written twice is one value
    for (Node& value : values)
      if (seen.insert(to_inline_toml(value)).second) axis.values.push_back({std::move(value)});
    sweep.axes.push_back(std::move(axis));
  }

  void read_table(const Node& table) {
    TableReader reader(table, "sweep", problems_);
    if (const Node* vary = reader.find("vary")) read_grid(*vary);
    if (const Node* points = reader.find("points")) read_points(*points);
    if (const Node* names = reader.find("strategies")) read_strategies(*names, "sweep.strategies");
  }

  void read_grid(const Node& table) {
    if (!table.is<Node::Table>())
      return problems_.add(table.position, "sweep.vary", "expected a table: key = values");
    for_each_leaf(table, "", [&](const std::string& name, const Node& written) {
      const std::string key = in_full(name);
      guarded([&] { grid_[key] = values_of(written); });
      if (grid_[key].empty())
        problems_.add(written.position, "sweep.vary." + key, "expected at least one value");
    });
  }

  // A list, whose texts may be ranges; or a text as on the command line; or one value.
  static Values values_of(const Node& written) {
    if (written.is<std::string>())
      return listed_values(written.as<std::string>(), written.position);
    if (!written.is<Node::Array>()) return {written};
    Values values;
    for (const Node& element : written.as<Node::Array>()) {
      std::optional<Values> range;
      if (element.is<std::string>())
        range = range_values(element.as<std::string>(), element.position);
      if (range)
        values.insert(values.end(), range->begin(), range->end());
      else
        values.push_back(element);
    }
    return values;
  }

  void read_points(const Node& list) {
    points_position_ = list.position;
    const auto wrong = [&](const Node& at, const char* why) {
      problems_.add(at.position, "sweep.points", why);
    };
    if (!list.is<Node::Array>()) return wrong(list, "expected a list of tables");
    for (const Node& point : list.as<Node::Array>()) {
      if (!point.is<Node::Table>()) return wrong(point, "expected a table: key = value");
      std::map<std::string, Node> values;
      for_each_leaf(point, "", [&](const std::string& key, const Node& value) {
        values[in_full(key)] = value;
      });
      std::vector<std::string> keys;
      Values row;
      for (auto& [key, value] : values) {
        keys.push_back(key);
        row.push_back(std::move(value));
      }
      if (keys.empty()) return wrong(point, "a point sets at least one key");
      if (points_.values.empty()) points_.keys = keys;
      if (points_.keys != keys) return wrong(point, "all points must set the same keys");
      points_.values.push_back(std::move(row));
    }
  }

  void read_strategies(const Node& written, const std::string& key) {
    std::vector<std::string> known;
    for (const Strategy& s : strategies()) known.push_back(s.name);
    Values names;
    const auto add = [&](const std::string& name, const Position& position) {
      Node node;
      node.value = name;
      node.position = position;
      names.push_back(std::move(node));
    };
    if (written.is<std::string>() && written.as<std::string>() == "all") {
      for (const std::string& name : known) add(name, written.position);
    } else if (written.is<Node::Array>() && !written.as<Node::Array>().empty()) {
      for (const Node& name : written.as<Node::Array>()) {
        const std::string text = name.is<std::string>() ? name.as<std::string>() : "";
        if (std::find(known.begin(), known.end(), text) == known.end())
          problems_.add(name.position, key,
                        fmt::format("no strategy named {}{}", scenarios::describe(name),
                                    did_you_mean(text, known)));
        add(text, name.position);
      }
    } else {
      return problems_.add(written.position, key, "expected \"all\" or a list of names");
    }
    strategies_ = std::move(names);
  }

  Problems problems_;
  std::map<std::string, Values> grid_;
  std::map<std::string, bool> on_command_line_;
  SweepAxis points_;
  Position points_position_;
  std::optional<Values> strategies_;
};

}  // namespace

std::size_t Sweep::points() const {
  std::size_t n = 1;
  for (const SweepAxis& axis : axes) n *= axis.values.size();
  return n;
}

std::vector<std::string> Sweep::keys() const {
  std::vector<std::string> out;
  for (const SweepAxis& axis : axes) out.insert(out.end(), axis.keys.begin(), axis.keys.end());
  return out;
}

std::vector<const Node*> Sweep::values(std::size_t point) const {
  std::vector<const std::vector<Node>*> chosen(axes.size());
  for (std::size_t a = axes.size(); a-- > 0; point /= axes[a].values.size())
    chosen[a] = &axes[a].values[point % axes[a].values.size()];
  std::vector<const Node*> out;
  for (const std::vector<Node>* values : chosen)
    for (const Node& value : *values) out.push_back(&value);
  return out;
}

std::vector<std::string> Sweep::overrides(std::size_t point) const {
  std::vector<std::string> out = keys();
  const std::vector<const Node*> chosen = values(point);
  for (std::size_t i = 0; i < out.size(); ++i) out[i] += "=" + to_inline_toml(*chosen[i]);
  return out;
}

Node Sweep::description() const {
  Node out, vary, points;
  points.value = Node::Array{};
  for (const SweepAxis& axis : axes) {
    if (axis.keys.size() == 1) {
      Node list;
      list.value = Node::Array{};
      for (const auto& choice : axis.values) list.as<Node::Array>().push_back(choice.front());
      if (axis.keys.front() == kStrategyKey && &axis == &axes.back())
        out.as<Node::Table>()["strategies"] = std::move(list);
      else
        vary.as<Node::Table>()[axis.keys.front()] = std::move(list);
      continue;
    }
    for (const auto& choice : axis.values) {
      Node point;
      for (std::size_t k = 0; k < axis.keys.size(); ++k)
        point.as<Node::Table>()[axis.keys[k]] = choice[k];
      points.as<Node::Array>().push_back(std::move(point));
    }
  }
  if (!vary.as<Node::Table>().empty()) out.as<Node::Table>()["vary"] = std::move(vary);
  if (!points.as<Node::Array>().empty()) out.as<Node::Table>()["points"] = std::move(points);
  return out;
}

Sweep read_sweep(const Node& run, const std::vector<std::string>& vary,
                 const std::optional<std::string>& strategies) {
  SweepReader reader(run);
  for (const std::string& text : vary) reader.vary(text);
  if (strategies) reader.set_strategies(*strategies);
  return reader.finish();
}

}  // namespace mllmsim::scenarios
