#include "scenarios/data_sets/data_lengths.hpp"

#include <fmt/format.h>

#include <charconv>
#include <fstream>
#include <system_error>

#include "scenarios/data_sets/data_records.hpp"
#include "sim/base/json_reader.hpp"
#include "sim/tables/parquet.hpp"

namespace mllmsim::scenarios {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kShownProblems = 10;
// Beyond that it is a mistake, and sums stay small.
constexpr std::int64_t kMostTokens = 100'000'000;

std::vector<std::string_view> split(std::string_view line) {
  std::vector<std::string_view> cells;
  while (true) {
    const std::size_t comma = line.find(',');
    cells.push_back(line.substr(0, comma));
    if (comma == std::string_view::npos) return cells;
    line.remove_prefix(comma + 1);
  }
}

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view kBlanks = " \t\r";
  const std::size_t first = text.find_first_not_of(kBlanks);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kBlanks) - first + 1);
}

std::size_t column_of(const std::vector<std::string_view>& header, const char* name,
                      Records& records) {
  for (std::size_t c = 0; c < header.size(); ++c)
    if (trimmed(header[c]) == name) return c;
  records.problem(1, name, "no such column");
  return 0;
}

// The first character that says what a JSON file is.
char first_character(const fs::path& file) {
  std::ifstream in(file);
  char c = 0;
  in >> c;
  return c;
}

void add_file(const fs::path& file, const std::string& name, data::DataSet& data) {
  std::error_code error;
  if (!fs::is_regular_file(file, error)) throw UserError(file.string(), "", "no such file");
  const std::size_t begin = data.samples.size();
  if (file.extension() == ".csv")
    read_csv_records(file, data.samples);
  else if (file.extension() == ".parquet")
    read_parquet_records(file, data.samples);
  else
    read_json_records(file, data.samples);
  data.sets.push_back({name, begin, data.samples.size()});
}

// {"SET": {"token_lengths": "FILE"}}: all files are tried, so that all their problems are told.
void add_meta_file(const fs::path& file, data::DataSet& data) {
  const boost::json::value root = parse_json(read_text(file), file.string());
  std::vector<Problem> problems;
  for (const auto& [name, entry] : root.as_object()) {
    const boost::json::value* path = &entry;
    if (entry.is_object()) path = entry.as_object().if_contains("token_lengths");
    if (!path || !path->is_string()) {
      problems.push_back(
          {file.string(), std::string(name), "expected {\"token_lengths\": \"FILE\"} or \"FILE\""});
      continue;
    }
    try {
      add_file(file.parent_path() / std::string(path->as_string()), std::string(name), data);
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
  std::ifstream in(file);
  if (!in) throw EnvironmentError("cannot read " + file.string());
  Records records(file, "line", out);
  std::string line;
  std::getline(in, line);
  const std::vector<std::string_view> header = split(line);
  const std::size_t columns[] = {column_of(header, kTilesKey, records),
                                 column_of(header, kTokensKey, records)};
  records.throw_if_any();
  for (std::size_t number = 2; std::getline(in, line); ++number) {
    if (trimmed(line).empty()) continue;
    const std::vector<std::string_view> cells = split(line);
    std::int64_t values[2] = {};
    bool right = true;
    for (int i = 0; i < 2; ++i) {
      const std::string_view cell = columns[i] < cells.size() ? trimmed(cells[columns[i]]) : "";
      const auto [end, error] = std::from_chars(cell.data(), cell.data() + cell.size(), values[i]);
      if (error == std::errc() && end == cell.data() + cell.size()) continue;
      right = false;
      records.problem(number, i == 0 ? kTilesKey : kTokensKey,
                      fmt::format("expected a whole number, found \"{}\"", cell));
    }
    if (right) records.add({values[0], values[1]}, number);
  }
  records.throw_if_any();
}

void read_parquet_records(const fs::path& file, std::vector<data::Sample>& out) {
  const tables::Table table = tables::read_parquet(file).table;
  Records records(file, "record", out);
  const auto column = [&](const char* name) -> const std::vector<std::int64_t>* {
    const tables::Column* found = table.find(name);
    if (!found) throw UserError(file.string(), name, "no such column");
    const auto* values = std::get_if<std::vector<std::int64_t>>(found);
    if (!values) throw UserError(file.string(), name, "expected a column of 64-bit whole numbers");
    return values;
  };
  const auto* tiles = column(kTilesKey);
  const auto* tokens = column(kTokensKey);
  out.reserve(out.size() + table.rows());
  for (std::size_t row = 0; row < table.rows(); ++row)
    records.add({(*tiles)[row], (*tokens)[row]}, row + 1);
  records.throw_if_any();
}

bool is_lengths_file(const fs::path& name) {
  const fs::path extension = name.extension();
  return extension == ".json" || extension == ".csv" || extension == ".parquet";
}

data::DataSet read_lengths(const fs::path& file) {
  data::DataSet data;
  if (file.extension() == ".json" && first_character(file) == '{')
    add_meta_file(file, data);
  else
    add_file(file, file.stem().string(), data);
  if (data.samples.empty()) throw UserError(file.string(), "", "has no samples");
  return data;
}

}  // namespace mllmsim::scenarios
