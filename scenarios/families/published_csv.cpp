#include "scenarios/families/published_csv.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "scenarios/tree/csv.hpp"
#include "scenarios/tree/toml_parse.hpp"
#include "scenarios/tree/toml_reader.hpp"
#include "sim/base/files.hpp"
#include "sim/base/json_reader.hpp"
#include "sim/base/text.hpp"

namespace mllmsim::scenarios {
namespace {

bool is_cell(const Node& node) { return node.is<std::string>() || node.find("column"); }

void read_cells(const Node& node, const std::string& key, std::vector<CsvCell>& out,
                Problems& problems) {
  if (!is_cell(node)) {
    if (!node.is<Node::Table>())
      return problems.add(node.position, "points." + key,
                          fmt::format("expected a column's name, found {}", describe(node)));
    for (const auto& [name, value] : node.as<Node::Table>())
      read_cells(value, key + "." + name, out, problems);
    return;
  }
  CsvCell cell;
  cell.key = key.substr(key.find('.') + 1);  // without "set." or "published."
  if (node.is<std::string>()) {
    cell.column = node.as<std::string>();
  } else {
    TableReader reader(node, "points." + key, problems);
    reader.read("column", cell.column);
    cell.scaled = reader.read("times", cell.times, {1e-12, 1e12});
    if (const Node* missing = reader.find("missing")) cell.missing = *missing;
    if (const Node* none = reader.find("none"); none && none->is<Node::Array>())
      for (const Node& text : none->as<Node::Array>())
        if (text.is<std::string>()) cell.none.push_back(text.as<std::string>());
    if (const Node* map = reader.find("map"); map && map->is<Node::Table>()) {
      cell.map = map->as<Node::Table>();
      cell.mapped = true;
    } else if (map) {
      reader.problem("map", "expected a table of what cells stand for");
    }
  }
  out.push_back(std::move(cell));
}

// The names in braces of "{Model} on {#_GPUs}".
template <class Replace>
std::string expand(const std::string& pattern, Replace replace) {
  std::string out;
  for (std::size_t at = 0; at < pattern.size();) {
    const std::size_t open = pattern.find('{', at);
    const std::size_t close = pattern.find('}', open);
    if (open == std::string::npos || close == std::string::npos) return out + pattern.substr(at);
    out += pattern.substr(at, open - at) + replace(pattern.substr(open + 1, close - open - 1));
    at = close + 1;
  }
  return out;
}

// Beyond it doubles skip whole numbers.
constexpr double kLargestWhole = 1e15;

bool is_argument(const std::string& column) { return column.starts_with("--"); }

std::vector<std::string> columns_of(const CsvMapping& mapping) {
  std::vector<std::string> out;
  expand(mapping.id, [&](const std::string& column) { return out.push_back(column), column; });
  const auto add = [&](const RowCondition& condition) {
    for (const auto& [column, texts] : condition.cells) out.push_back(column);
  };
  add(mapping.where);
  for (const CsvChange& change : mapping.when) add(change.where);
  for (const CsvLeftOut& rows : mapping.leave_out) add(rows.where);
  for (const auto* list : {&mapping.set, &mapping.published})
    for (const CsvCell& cell : *list) out.push_back(cell.column);
  if (!mapping.json.empty()) {
    std::erase_if(out, is_argument);
    out.push_back(mapping.json);
  }
  return out;
}

// A row's cells by column, those of its arguments included.
class RowCells {
 public:
  RowCells(const CsvMapping& mapping, const CsvTable& table, const CsvRow& row)
      : table_(table), row_(row) {
    if (mapping.json.empty()) return;
    const Node& cell = row.cells[table.index_of(mapping.json)];
    missing_.value = std::string();
    missing_.position = cell.position;
    const auto value = parse_json(cell.as<std::string>(), cell.position.file, cell.position.line);
    if (!value.is_object())
      throw UserError(cell.position.file, mapping.json, "expected a JSON object of arguments");
    for (const auto& [name, member] : value.as_object()) {
      Node node = missing_;
      node.value = member.is_string() ? std::string(member.as_string()) : serialize(member);
      arguments_.emplace(name, std::move(node));
    }
    has_arguments_ = true;
  }

  const Node& operator[](const std::string& column) const {
    if (!has_arguments_ || !is_argument(column)) return row_.cells[table_.index_of(column)];
    const auto it = arguments_.find(column);
    return it == arguments_.end() ? missing_ : it->second;
  }
  const std::string& text(const std::string& column) const {
    return (*this)[column].as<std::string>();
  }

 private:
  const CsvTable& table_;
  const CsvRow& row_;
  bool has_arguments_ = false;
  std::map<std::string, Node> arguments_;
  Node missing_;
};

// What the map of a cell has for a text, or for all others ("*").
const Node* mapped(const CsvCell& cell, const std::string& text) {
  auto it = cell.map.find(text);
  if (it == cell.map.end()) it = cell.map.find("*");
  return it == cell.map.end() ? nullptr : &it->second;
}

// A cell's text as the value it stands for; a scaled one must be a number.
bool value_of(const CsvCell& cell, const Node& text, Node& out, Problems& problems) {
  const auto& written = text.as<std::string>();
  const auto wrong = [&](const std::string& expected) {
    problems.add(text.position, cell.column,
                 fmt::format("expected {}, found \"{}\"", expected, written));
    return false;
  };
  if (written.empty() && cell.missing) {
    out.value = cell.missing->value;
    out.position = text.position;
    return true;
  }
  out = cell.mapped ? *mapped(cell, written) : parse_value(written, text.position);
  out.position = text.position;
  if (written.empty()) return wrong("a value");
  if (!cell.scaled) return true;
  if (!out.is<std::int64_t>() && !out.is<double>()) return wrong("a number");
  const double number =
      (out.is<double>() ? out.as<double>() : static_cast<double>(out.as<std::int64_t>())) *
      cell.times;
  if (number == std::round(number) && std::abs(number) < kLargestWhole)
    out.value = static_cast<std::int64_t>(number);
  else
    out.value = number;
  return true;
}

void read_rules(const Node* list, const char* key, Problems& problems,
                const std::function<void(TableReader&, const Node&)>& add) {
  if (!list) return;
  if (!list->is<Node::Array>())
    return problems.add(list->position, key, "expected a list of tables with `where`");
  for (const Node& node : list->as<Node::Array>()) {
    TableReader reader(node, key, problems);
    if (const Node* where = reader.find("where"))
      add(reader, *where);
    else
      reader.problem("where", "missing: of which rows?");
  }
}

// The first cell of a row that its map does not have.
const CsvCell* unmapped(const CsvMapping& mapping, const CellText& text) {
  for (const auto* list : {&mapping.set, &mapping.published})
    for (const CsvCell& cell : *list) {
      const std::string& written = text(cell.column);
      if (!cell.mapped || mapped(cell, written) || (written.empty() && cell.missing)) continue;
      if (std::ranges::find(cell.none, written) == cell.none.end()) return &cell;
    }
  return nullptr;
}

std::string expected_instead(const CsvCell& cell, const std::string& written) {
  std::vector<std::string> names;
  for (const auto& [name, value] : cell.map) names.push_back(name);
  return fmt::format("expected {}, found \"{}\"", one_of(names), written);
}

void leave_out(const std::string& because, CsvPoints& out) {
  for (LeftOut& rows : out.left_out)
    if (rows.because == because) {
      ++rows.rows;
      return;
    }
  out.left_out.push_back({because, 1});
}

void read_row(const CsvMapping& mapping, const RowCells& cells, const CsvRow& row, CsvPoints& out,
              Problems& not_mapped, Problems& problems) {
  const CellText text = [&](const std::string& column) -> const std::string& {
    return cells.text(column);
  };
  if (!mapping.where.holds(text)) return;
  for (const CsvLeftOut& rows : mapping.leave_out)
    if (rows.where.holds(text)) return leave_out(rows.because, out);
  if (const CsvCell* cell = unmapped(mapping, text)) {
    const std::string because = expected_instead(*cell, text(cell->column));
    not_mapped.add(cells[cell->column].position, cell->column, because);
    return leave_out(fmt::format("{}: {}", cell->column, because), out);
  }
  CsvPoint point;
  point.position = point.set.position = point.published.position = row.position;
  point.id = expand(mapping.id, text);
  const auto fill = [&](const std::vector<CsvCell>& from, Node& into) {
    for (const CsvCell& cell : from) {
      if (std::ranges::find(cell.none, cells.text(cell.column)) != cell.none.end()) continue;
      Node value;
      if (value_of(cell, cells[cell.column], value, problems))
        into.as<Node::Table>()[cell.key] = std::move(value);
    }
  };
  fill(mapping.set, point.set);
  fill(mapping.published, point.published);
  for (const CsvChange& change : mapping.when)
    if (change.where.holds(text)) point.changes.push_back(change.set);
  out.points.push_back(std::move(point));
}

}  // namespace

CsvMapping read_csv_mapping(const Node& table, Problems& problems) {
  TableReader reader(table, "points", problems);
  CsvMapping out;
  std::string file;
  reader.require("csv", file);
  out.file = file;
  reader.require("id", out.id);
  reader.read("json", out.json);
  if (const Node* where = reader.find("where"))
    out.where = read_row_condition(*where, "points.where", problems);
  read_rules(reader.find("when"), "points.when", problems, [&](TableReader& rule, const Node& at) {
    const Node* set = rule.find("set");
    if (!set) return rule.problem("set", "missing: what is changed in these rows?");
    out.when.push_back({read_row_condition(at, "points.when.where", problems), *set});
  });
  read_rules(reader.find("leave_out"), "points.leave_out", problems,
             [&](TableReader& rule, const Node& at) {
               std::string because;
               rule.require("because", because);
               out.leave_out.push_back(
                   {read_row_condition(at, "points.leave_out.where", problems), because});
             });
  if (const Node* set = reader.find("set")) read_cells(*set, "set", out.set, problems);
  if (const Node* published = reader.find("published"))
    read_cells(*published, "published", out.published, problems);
  if (out.published.empty())
    reader.problem("published", "missing: which column has the published figure?");
  return out;
}

CsvPoints read_csv_points(const CsvMapping& mapping, const std::filesystem::path& file,
                          Problems& problems) {
  CsvPoints out;
  for (const CsvLeftOut& rows : mapping.leave_out) out.left_out.push_back({rows.because, 0});
  try {
    const CsvTable table =
        parse_csv(read_file(file, kSmallFile), file.string(), columns_of(mapping));
    Problems not_mapped;
    for (const CsvRow& row : table.rows)
      read_row(mapping, RowCells(mapping, table, row), row, out, not_mapped, problems);
    if (out.points.empty()) not_mapped.throw_if_any();
    std::erase_if(out.left_out, [](const LeftOut& rows) { return rows.rows == 0; });
  } catch (const UserError& e) {
    problems.add(e);
  }
  return out;
}

}  // namespace mllmsim::scenarios
