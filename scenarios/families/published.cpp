#include "scenarios/families/published.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <system_error>

#include "scenarios/tree/merge.hpp"
#include "scenarios/tree/problems.hpp"
#include "scenarios/tree/quantity.hpp"
#include "scenarios/tree/toml_parse.hpp"
#include "scenarios/tree/toml_reader.hpp"
#include "sim/base/text.hpp"

namespace mllmsim::scenarios {
namespace {

namespace fs = std::filesystem;

// Takes a member out of a table.
std::optional<Node> take(Node& table, const char* key) {
  auto handle = table.as<Node::Table>().extract(key);
  if (handle.empty()) return std::nullopt;
  return std::move(handle.mapped());
}

// What a metric's name says its unit is; null for bare numbers.
const Dimension* dimension_of(std::string_view metric) {
  if (metric.ends_with("_bytes")) return &kMemorySize;
  if (metric.ends_with("_s") && !metric.ends_with("_per_s")) return &kDuration;
  return nullptr;
}

// Where `name` lies: beside the family, in the directory that was named, or in folders below that.
std::vector<fs::path> csv_files(const fs::path& name, const fs::path& beside,
                                const fs::path& directory) {
  std::error_code unknown;
  for (const fs::path& folder : {beside, directory})
    if (fs::exists(folder / name, unknown)) return {folder / name};
  std::vector<fs::path> found;
  std::error_code error;
  const auto readable = fs::directory_options::skip_permission_denied;
  for (fs::recursive_directory_iterator at(directory, readable, error), end; !error && at != end;
       at.increment(error))
    if (at->is_directory(unknown) && fs::exists(at->path() / name, unknown))
      found.push_back(at->path() / name);
  std::sort(found.begin(), found.end());
  return found;
}

class FamilyReader {
 public:
  FamilyReader(PublishedFamily& out, Problems& problems) : out_(out), problems_(problems) {}

  void read(Node root, const std::vector<std::string>& overrides, const fs::path& csv_directory) {
    const std::optional<std::string> csv = csv_override(overrides);
    const std::optional<Node> points = take(root, "points");
    read_head(root);
    run_ = std::move(root);
    if (!points) return problems_.add(run_.position, "points", "missing, and it has no default");
    if (points->is<Node::Array>())
      for (const Node& point : points->as<Node::Array>()) read_point(point);
    else
      read_csv(*points, csv, csv_directory);
    for (std::size_t i = 0; i < out_.points.size(); ++i) link(i);
  }

 private:
  // "points.csv=PATH" is for us, everything else for the points.
  std::optional<std::string> csv_override(const std::vector<std::string>& overrides) {
    std::optional<std::string> csv;
    constexpr std::string_view kKey = "points.csv=";
    for (const std::string& text : overrides)
      if (text.starts_with(kKey))
        csv = text.substr(kKey.size());
      else
        overrides_.push_back(text);
    return csv;
  }

  // Our own keys, taken out of the tree so that the rest is a run.
  void read_head(Node& root) {
    Node head;
    head.position = root.position;
    for (const char* key : {"source", "target"})
      if (std::optional<Node> node = take(root, key))
        head.as<Node::Table>().emplace(key, std::move(*node));
    TableReader reader(head, "", problems_);
    reader.require("source", out_.source);
    if (const Node* table = reader.find("target")) read_target(*table);
    if (const Node* text = root.find("description"); text && text->is<std::string>())
      out_.description = text->as<std::string>();
    if (const Node* list = root.find("assumptions"); list && list->is<Node::Array>())
      for (const Node& text : list->as<Node::Array>())
        if (text.is<std::string>()) out_.assumptions.push_back(text.as<std::string>());
  }

  void read_target(const Node& table) {
    TableReader reader(table, "target", problems_);
    const auto limit = [&](const char* key, std::optional<double>& out) {
      double value = 0;
      if (reader.read(key, value, {0, 10})) out = value;
    };
    limit("median", out_.target.median);
    limit("mean", out_.target.mean);
    limit("largest", out_.target.largest);
  }

  void read_point(const Node& node) {
    TableReader reader(node, "points", problems_);
    std::string id, over;
    reader.require("id", id);
    bool sensitivity = false;
    reader.read("sensitivity", sensitivity);
    const Node* set = reader.find("set");
    const Node* published = reader.find("published");
    const Node* over_node =
        reader.read("speedup_over", over) ? reader.find("speedup_over") : nullptr;
    if (!published)
      return reader.problem("published", "missing: which figures were published for this point?");
    add_point(id, node.position, set ? std::vector{set} : std::vector<const Node*>{}, *published);
    out_.points.back().sensitivity = sensitivity;
    if (over_node) speedups_.emplace(out_.points.size() - 1, *over_node);
  }

  void add_point(const std::string& id, const Position& position,
                 const std::vector<const Node*>& changes, const Node& published) {
    PublishedPoint point;
    point.id = id;
    point.position = position;
    point.run = run_;
    for (const Node* set : changes) apply_changes(point.run, *set, problems_);
    apply_overrides(point.run, overrides_, problems_);
    read_figures(published, "", point.figures);
    if (point.figures.empty())
      problems_.add(published.position, "points.published", "expected metrics and their figures");
    const auto [it, first] = ids_.emplace(id, out_.points.size());
    if (!first)
      problems_.add(position, "points.id", fmt::format("another point has the id \"{}\"", id));
    out_.points.push_back(std::move(point));
  }

  void read_figures(const Node& node, const std::string& metric,
                    std::vector<PublishedFigure>& out) {
    if (node.is<Node::Table>()) {
      for (const auto& [name, value] : node.as<Node::Table>())
        read_figures(value, metric.empty() ? name : metric + "." + name, out);
      return;
    }
    PublishedFigure figure;
    figure.metric = metric;
    figure.position = node.position;
    if (node.is<bool>()) {
      figure.flag = true;
      figure.value = node.as<bool>() ? 1 : 0;
    } else if (node.is<std::int64_t>()) {
      figure.value = static_cast<double>(node.as<std::int64_t>());
    } else if (node.is<double>()) {
      figure.value = node.as<double>();
    } else if (!read_quantity(node, metric, figure.value)) {
      return;
    }
    if (!figure.flag && !(figure.value > 0))
      return problems_.add(node.position, "points.published." + metric,
                           fmt::format("expected a number above 0, found {}", describe(node)));
    out.push_back(std::move(figure));
  }

  bool read_quantity(const Node& node, const std::string& metric, double& out) {
    const Dimension* dimension = dimension_of(metric);
    ParsedQuantity parsed;
    if (!dimension || !node.is<std::string>())
      parsed.problem = fmt::format("expected a number, found {}", describe(node));
    else
      parsed = parse_quantity(node.as<std::string>(), *dimension);
    if (!parsed.problem.empty())
      problems_.add(node.position, "points.published." + metric, parsed.problem);
    out = parsed.value;
    return parsed.problem.empty();
  }

  // The point that a speed-up is over stands anywhere in the family.
  void link(std::size_t i) {
    const auto over = speedups_.find(i);
    if (over == speedups_.end()) return;
    const auto& id = over->second.as<std::string>();
    if (const auto it = ids_.find(id); it != ids_.end() && it->second != i) {
      out_.points[i].speedup_over = it->second;
      return;
    }
    std::vector<std::string> known;
    for (const auto& [name, index] : ids_) known.push_back(name);
    problems_.add(over->second.position, "points.speedup_over",
                  fmt::format("no other point has the id \"{}\"{}", id, did_you_mean(id, known)));
  }

  void read_csv(const Node& mapping, const std::optional<std::string>& csv,
                const fs::path& csv_directory) {
    const std::size_t before = problems_.count();
    const CsvMapping map = read_csv_mapping(mapping, problems_);
    if (problems_.count() != before) return;
    const std::vector<fs::path> files =
        csv ? std::vector<fs::path>{*csv}
            : csv_files(map.file, out_.file.parent_path(), csv_directory);
    if (files.empty()) {
      out_.skipped = fmt::format(
          "{} is not there; name it with points.csv=PATH or its directory with --csv-dir",
          map.file.string());
      return;
    }
    if (files.size() > 1)
      return problems_.add(mapping.position, "points.csv",
                           fmt::format("found {} and {}; say which with points.csv=PATH",
                                       files[0].string(), files[1].string()));
    CsvPoints found = read_csv_points(map, files.front(), problems_);
    for (const CsvPoint& point : found.points) {
      std::vector<const Node*> changes{&point.set};
      for (const Node& change : point.changes) changes.push_back(&change);
      add_point(ids_.contains(point.id) ? fmt::format("{} (line {})", point.id, point.position.line)
                                        : point.id,
                point.position, changes, point.published);
      out_.points.back().from_table = true;
    }
    out_.left_out = std::move(found.left_out);
  }

  PublishedFamily& out_;
  Problems& problems_;
  Node run_;
  std::vector<std::string> overrides_;
  std::map<std::string, std::size_t> ids_;
  std::map<std::size_t, Node> speedups_;
};

}  // namespace

PublishedFamily read_published(const fs::path& file, const std::vector<std::string>& overrides,
                               const fs::path& csv_directory) {
  PublishedFamily family;
  family.file = file;
  Problems problems;
  FamilyReader(family, problems).read(parse_toml_file(file), overrides, csv_directory);
  problems.throw_if_any();
  return family;
}

}  // namespace mllmsim::scenarios
