#include "scenarios/data_sets/data_lengths.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <system_error>

#include "scenarios/data_sets/data_records.hpp"
#include "sim/base/csv.hpp"
#include "sim/base/files.hpp"
#include "sim/base/json_reader.hpp"
#include "sim/base/text.hpp"

namespace mllmsim::scenarios {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kShownProblems = 10;

std::map<std::string, LengthsReader>& formats() {
  static std::map<std::string, LengthsReader> all{{".csv", read_csv_records},
                                                  {".json", read_json_records}};
  return all;
}

std::vector<std::string> known_extensions() {
  std::vector<std::string> names;
  for (const auto& [extension, reader] : formats()) names.push_back(extension);
  return names;
}

std::size_t column_of(const std::vector<CsvField>& header, const char* name, Records& records) {
  for (std::size_t c = 0; c < header.size(); ++c)
    if (header[c].text == name) return c;
  records.problem(1, name, "no such column");
  return 0;
}

void add_file(const fs::path& file, const std::string& name, data::DataSet& data) {
  std::error_code error;
  if (!fs::exists(file, error)) throw UserError(file.string(), "", "no such file");
  const std::size_t begin = data.samples.size();
  const auto format = formats().find(file.extension().string());
  if (format == formats().end())
    throw UserError(file.string(), "",
                    "this program reads no lengths of this kind; known are " +
                        fmt::format("{}", fmt::join(known_extensions(), ", ")));
  format->second(file, data.samples);
  data.sets.push_back({name, begin, data.samples.size()});
}

// InternVL's repeat_time: so many times the set's samples, of a part those that are spread over it.
void repeat(double times, data::DataSet& data) {
  data::SampleSet& set = data.sets.back();
  const std::vector<data::Sample> once(
      data.samples.begin() + static_cast<std::ptrdiff_t>(set.begin), data.samples.end());
  const auto wanted = static_cast<std::size_t>(
      std::max(1LL, std::llround(times * static_cast<double>(once.size()))));
  const std::size_t all = once.size() * static_cast<std::size_t>(std::max(1.0, std::ceil(times)));
  data.samples.resize(set.begin);
  for (std::size_t i = 0; i < wanted; ++i)
    data.samples.push_back(once[i * all / wanted % once.size()]);
  set.end = data.samples.size();
}

// Empty if the entry has none; nothing if it is wrong.
std::optional<double> repeat_time(const boost::json::value& entry) {
  const boost::json::value* given =
      entry.is_object() ? entry.as_object().if_contains("repeat_time") : nullptr;
  if (!given) return 1;
  if (!given->is_number()) return std::nullopt;
  const auto times = given->to_number<double>();
  return times > 0 && times <= 1000 ? std::optional(times) : std::nullopt;
}

// {"SET": {"token_lengths": "FILE"}}: all files are tried, so that all their problems are told.
void add_meta_file(const boost::json::value& root, const fs::path& file, data::DataSet& data) {
  std::vector<Problem> problems;
  for (const auto& [name, entry] : root.as_object()) {
    const boost::json::value* path = &entry;
    if (entry.is_object()) path = entry.as_object().if_contains("token_lengths");
    if (!path || !path->is_string()) {
      problems.push_back(
          {file.string(), std::string(name), "expected {\"token_lengths\": \"FILE\"} or \"FILE\""});
      continue;
    }
    const std::optional<double> times = repeat_time(entry);
    if (!times) {
      problems.push_back({file.string(), std::string(name) + ".repeat_time",
                          "expected a number above 0, at most 1000"});
      continue;
    }
    try {
      add_file(file.parent_path() / std::string(path->as_string()), std::string(name), data);
      if (*times != 1 && data.sets.back().end > data.sets.back().begin) repeat(*times, data);
    } catch (const UserError& e) {
      problems.insert(problems.end(), e.problems().begin(), e.problems().end());
    }
  }
  if (!problems.empty()) throw UserError(problems);
}

}  // namespace

void Records::problem(std::size_t position, std::string key, std::string message) {
  if (++count_ > kShownProblems) return;
  problems_.push_back(
      {fmt::format("{}: {} {}", file_, unit_, position), std::move(key), std::move(message)});
}

void Records::throw_if_any() const {
  if (count_ == 0) return;
  std::vector<Problem> all = problems_;
  if (count_ > all.size())
    all.push_back({file_, "", fmt::format("{} more problems like these", count_ - all.size())});
  throw UserError(all);
}

bool Records::right(const std::optional<std::int64_t>& value, std::int64_t least, const char* key,
                    std::size_t position) {
  if (value && *value >= least && *value <= kMostTokens) return true;
  if (!value)
    problem(position, key, "missing");
  else
    problem(
        position, key,
        fmt::format("expected a whole number from {} to {}, found {}", least, kMostTokens, *value));
  return false;
}

void Records::add(const Record& record, std::size_t position) {
  const bool tiles = right(record.tiles, 0, kTilesKey, position);
  const bool tokens = right(record.tokens, 1, kTokensKey, position);
  if (tiles && tokens)
    out_.push_back(
        {static_cast<std::int32_t>(*record.tiles), static_cast<std::int32_t>(*record.tokens)});
}

void read_csv_records(const fs::path& file, std::vector<data::Sample>& out) {
  const std::string text = read_file(file, kLargeFile);
  CsvReader reader(text, file.string());
  Records records(file, "line", out);
  std::vector<CsvField> cells;
  reader.next(cells);
  const std::size_t columns[] = {column_of(cells, kTilesKey, records),
                                 column_of(cells, kTokensKey, records)};
  records.throw_if_any();
  while (reader.next(cells)) {
    const std::size_t line = cells.front().line;
    const auto value = [&](std::size_t column, const char* key) {
      const std::string_view cell =
          column < cells.size() ? std::string_view(cells[column].text) : std::string_view();
      const auto number = to_number<std::int64_t>(cell);
      if (!number)
        records.problem(line, key, fmt::format("expected a whole number, found \"{}\"", cell));
      return number;
    };
    const Record record{value(columns[0], kTilesKey), value(columns[1], kTokensKey)};
    if (record.tiles && record.tokens) records.add(record, line);
  }
  records.throw_if_any();
}

void register_lengths_format(std::string extension, LengthsReader reader) {
  formats().insert_or_assign(std::move(extension), reader);
}

bool is_lengths_file(const fs::path& name) {
  const fs::path extension = name.extension();
  return extension == ".parquet" || formats().contains(extension.string());
}

data::DataSet read_lengths(const fs::path& file) {
  data::DataSet data;
  const std::string text = file.extension() == ".json" ? read_file(file, kLargeFile) : "";
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  if (first != std::string::npos && text[first] == '{')
    add_meta_file(parse_json(text, file.string()), file, data);
  else
    add_file(file, file.stem().string(), data);
  if (data.samples.empty()) throw UserError(file.string(), "", "has no samples");
  return data;
}

}  // namespace mllmsim::scenarios
