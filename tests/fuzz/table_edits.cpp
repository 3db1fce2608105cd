#include "tests/fuzz/table_edits.hpp"

#include <algorithm>
#include <cstdlib>
#include <optional>

#include "sim/base/text.hpp"

namespace mllmsim::fuzz {
namespace {

constexpr std::size_t kMostRows = 1000;

// "spans.start_ns[3] = -5"
struct Edit {
  std::string verb, table, column, value;
  std::optional<std::size_t> row;
};

Edit parse(std::string_view line) {
  Edit edit;
  for (const char* verb : {"drop ", "rename ", "type ", "rows ", "meta ", "lose "})
    if (line.starts_with(verb)) {
      edit.verb = trimmed(verb);
      line.remove_prefix(edit.verb.size() + 1);
    }
  const std::size_t equals = line.find('=');
  std::string_view name = trimmed(line.substr(0, equals));
  if (equals != std::string_view::npos) edit.value = trimmed(line.substr(equals + 1));
  for (std::size_t at; (at = edit.value.find("\\n")) != std::string::npos;)
    edit.value.replace(at, 2, "\n");
  const std::size_t dot = name.find('.');
  edit.table = name.substr(0, dot);
  if (dot == std::string_view::npos) return edit;
  name.remove_prefix(dot + 1);
  if (const std::size_t bracket = name.find('['); name.ends_with("]") && bracket < name.size()) {
    edit.row = to_number<std::size_t>(name.substr(bracket + 1, name.size() - bracket - 2));
    name = name.substr(0, bracket);
  }
  edit.column = name;
  return edit;
}

struct FromText {
  const std::string& text;

  std::int64_t operator()(const std::vector<std::int64_t>&) const {
    return std::strtoll(text.c_str(), nullptr, 10);
  }
  double operator()(const std::vector<double>&) const {
    return std::strtod(text.c_str(), nullptr);  // knows nan and inf
  }
  bool operator()(const std::vector<bool>&) const { return text == "true"; }
  std::string_view operator()(const tables::StringColumn&) const { return text; }
};

void set_cells(tables::Column& column, const Edit& edit) {
  std::visit(
      [&](auto& values) {
        std::remove_cvref_t<decltype(values)> changed;
        for (std::size_t i = 0; i < values.size(); ++i)
          if (!edit.row || *edit.row == i)
            changed.push_back(FromText{edit.value}(values));
          else
            changed.push_back(values[i]);
        values = std::move(changed);
      },
      column);
}

tables::Column empty_cells(const std::string& type, std::size_t rows) {
  if (type == "int") return std::vector<std::int64_t>(rows);
  if (type == "float") return std::vector<double>(rows);
  if (type == "flag") return std::vector<bool>(rows);
  tables::StringColumn texts;
  for (std::size_t i = 0; i < rows; ++i) texts.push_back("");
  return texts;
}

void set_rows(tables::Table& table, std::size_t rows) {
  for (auto& [name, column] : table.columns)
    std::visit(
        [&](auto& values) {
          std::remove_cvref_t<decltype(values)> changed;
          for (std::size_t i = 0; i < rows && values.size() > 0; ++i)
            changed.push_back(values[std::min(i, values.size() - 1)]);
          values = std::move(changed);
        },
        column);
}

void apply(const Edit& edit, tables::ParquetFile& file) {
  auto& columns = file.table.columns;
  if (edit.verb == "meta") {
    file.metadata[edit.column] = edit.value;
    return;
  }
  if (edit.verb == "rows") {
    if (const auto rows = to_number<std::size_t>(edit.value))
      set_rows(file.table, std::min(*rows, kMostRows));
    return;
  }
  const auto column = std::find_if(columns.begin(), columns.end(),
                                   [&](const auto& c) { return c.first == edit.column; });
  if (column == columns.end()) return;
  if (edit.verb == "drop")
    columns.erase(column);
  else if (edit.verb == "rename")
    column->first = edit.value;
  else if (edit.verb == "type")
    column->second = empty_cells(edit.value, file.table.rows());
  else
    set_cells(column->second, edit);
}

// The changed files; nothing for one that is lost.
std::map<std::string, std::optional<tables::ParquetFile>> edited(const std::string& edits,
                                                                 const Files& files) {
  std::map<std::string, std::optional<tables::ParquetFile>> changed;
  std::string_view rest = edits;
  while (!rest.empty()) {
    const Edit edit = parse(take_line(rest));
    const auto original = files.find(edit.table);
    if (original == files.end()) continue;
    auto& file = changed.try_emplace(edit.table, original->second).first->second;
    if (edit.verb == "lose")
      file.reset();
    else if (file)
      apply(edit, *file);
  }
  return changed;
}

// Under asan, zstd's working memory for each of the many columns takes most of the time.
void write(const tables::ParquetFile& file, const std::filesystem::path& path) {
  tables::write_parquet(file.table, file.metadata, path, tables::Compression::none);
}

}  // namespace

EditedDirectory::EditedDirectory(std::filesystem::path directory, Files files)
    : directory_(std::move(directory)), files_(std::move(files)) {
  for (const auto& [name, original] : files_) {
    std::filesystem::create_directories(file(name).parent_path());
    write(original, file(name));
    std::filesystem::copy_file(file(name), original_file(name));
  }
}

void EditedDirectory::change(const std::string& edits) {
  for (const std::string& name : changed_)
    std::filesystem::copy_file(original_file(name), file(name),
                               std::filesystem::copy_options::overwrite_existing);
  changed_.clear();
  for (const auto& [name, changed] : edited(edits, files_)) {
    changed_.insert(name);
    if (changed)
      write(*changed, file(name));
    else
      std::filesystem::remove(file(name));
  }
}

std::filesystem::path EditedDirectory::file(const std::string& name) const {
  return directory_ / (name + ".parquet");
}

std::filesystem::path EditedDirectory::original_file(const std::string& name) const {
  return file(name).replace_extension(".original");
}

}  // namespace mllmsim::fuzz
