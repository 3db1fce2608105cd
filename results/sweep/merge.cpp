#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <sstream>

#include "results/sweep/sweep_tables.hpp"
#include "sim/base/errors.hpp"
#include "sim/base/text.hpp"

namespace mllmsim::sweep {
namespace {

namespace fs = std::filesystem;

struct Part {
  fs::path directory;
  tables::ParquetFile runs, stages;
};

[[noreturn]] void wrong(const fs::path& directory, const std::string& why) {
  throw UserError(directory.string(), "", why);
}

const std::string& text(const Part& part, const char* key) {
  const auto it = part.runs.metadata.find(key);
  if (it == part.runs.metadata.end()) wrong(part.directory, "is not the result of a sweep");
  return it->second;
}

const std::vector<std::int64_t>& points_of(const Part& part, const tables::Table& table) {
  const tables::Column* column = table.find("point");
  if (!column || !std::holds_alternative<std::vector<std::int64_t>>(*column))
    wrong(part.directory, "is not the result of a sweep");
  return std::get<std::vector<std::int64_t>>(*column);
}

std::string metadata_of(const tables::ParquetFile& file, const char* key) {
  const auto it = file.metadata.find(key);
  return it == file.metadata.end() ? "" : it->second;
}

Part read_part(const fs::path& directory) {
  std::error_code error;
  if (!fs::is_directory(directory, error)) wrong(directory, "no such directory");
  if (!fs::exists(directory / "runs.parquet", error))
    wrong(directory,
          "has no runs.parquet: its sweep has not finished; the command that began it "
          "continues it");
  Part part{directory, tables::read_parquet(directory / "runs.parquet"),
            tables::read_parquet(directory / "stages.parquet")};
  for (const char* key : {"scenario_hash", "inputs"})
    if (metadata_of(part.runs, key) != metadata_of(part.stages, key))
      wrong(
          directory,
          "its runs.parquet and stages.parquet are of two sweeps: the last one was killed while it "
          "wrote them; the command that began it continues it");
  return part;
}

// Which part a point is taken from.
std::map<std::int64_t, const Part*> owners(const std::vector<Part>& parts) {
  std::map<std::int64_t, const Part*> out;
  for (const Part& part : parts)
    for (const std::int64_t point : points_of(part, part.runs.table)) out.emplace(point, &part);
  return out;
}

void append_row(const tables::Table& from, std::size_t row, tables::Table& to) {
  for (std::size_t c = 0; c < to.columns.size(); ++c) {
    const std::string& name = to.columns[c].first;
    if (from.is_null(name, row)) to.set_null(name, to.rows() - (c == 0 ? 0 : 1));
    std::visit(
        [&](auto& column) {
          using Values = std::remove_cvref_t<decltype(column)>;
          column.push_back(std::get<Values>(from.columns[c].second)[row]);
        },
        to.columns[c].second);
  }
}

// An empty table with the columns of another.
tables::Table like(const tables::Table& table) {
  tables::Table out;
  for (const auto& [name, column] : table.columns)
    out.columns.emplace_back(name, std::visit(
                                       [](const auto& c) -> tables::Column {
                                         return std::remove_cvref_t<decltype(c)>{};
                                       },
                                       column));
  return out;
}

tables::Table joined(const std::vector<Part>& parts,
                     const std::map<std::int64_t, const Part*>& owner,
                     tables::ParquetFile Part::*file) {
  std::map<std::int64_t, std::vector<std::size_t>> rows;  // of each point, in its part
  for (const Part& part : parts) {
    const auto& points = points_of(part, (part.*file).table);
    for (std::size_t row = 0; row < points.size(); ++row) {
      const auto it = owner.find(points[row]);
      if (it == owner.end()) wrong(part.directory, "has stages of a point that it does not have");
      if (it->second == &part) rows[points[row]].push_back(row);
    }
  }
  tables::Table out = like((parts.front().*file).table);
  for (const auto& [point, own] : rows)
    for (const std::size_t row : own) append_row((owner.at(point)->*file).table, row, out);
  return out;
}

// Lines "hash name" of all parts, by name as run_sweep writes them; the same name with two hashes
// is a file that changed between shards.
std::string joined_inputs(const std::vector<Part>& parts) {
  std::map<std::string, std::string> hash_of;
  for (const Part& part : parts) {
    std::istringstream lines(text(part, "inputs"));
    std::string hash, name;
    while (lines >> hash && std::getline(lines >> std::ws, name)) {
      const auto [it, added] = hash_of.emplace(name, hash);
      if (!added && it->second != hash)
        wrong(part.directory, fmt::format("{} changed between this shard and others; run the older "
                                          "shards again",
                                          name));
    }
  }
  std::string out;
  for (const auto& [name, hash] : hash_of) out += hash + " " + name + "\n";
  return out;
}

void require_alike(const std::vector<Part>& parts) {
  const Part& first = parts.front();
  for (const Part& part : parts) {
    for (const char* key : {"version", "scenario_hash", "points"})
      if (text(part, key) != text(first, key))
        wrong(part.directory,
              fmt::format("is of another {} than {}",
                          key == std::string("version") ? "version of mllmsim" : "sweep",
                          first.directory.string()));
    if (like(part.runs.table) != like(first.runs.table) ||
        like(part.stages.table) != like(first.stages.table))
      wrong(part.directory, "has other columns than " + first.directory.string());
  }
}

void require_all(const std::map<std::int64_t, const Part*>& owner, const Part& part) {
  const auto points = to_number<std::size_t>(text(part, "points"));
  const auto beyond = [&](std::int64_t p) {
    return p < 0 || static_cast<std::size_t>(p) >= *points;
  };
  if (!points ||
      (!owner.empty() && (beyond(owner.begin()->first) || beyond(owner.rbegin()->first))))
    wrong(part.directory, "is not the result of a sweep");
  if (owner.size() == *points) return;
  std::int64_t missing = 0;
  while (owner.contains(missing)) ++missing;
  throw UserError(
      "merge", "",
      fmt::format("{} of {} points are missing, the first is {}: all shards must be there",
                  *points - std::min(*points, owner.size()), *points, missing));
}

// "shard-2-of-8"
std::optional<Shard> shard_of(const std::string& name) {
  constexpr std::string_view kShard = "shard-", kOf = "-of-";
  if (!name.starts_with(kShard)) return std::nullopt;
  const std::string_view rest = std::string_view(name).substr(kShard.size());
  const std::size_t of = rest.find(kOf);
  if (of == std::string_view::npos) return std::nullopt;
  const auto index = to_number<std::size_t>(rest.substr(0, of));
  const auto count = to_number<std::size_t>(rest.substr(of + kOf.size()));
  if (!index || !count || *index < 1 || *index > *count) return std::nullopt;
  return Shard{*index, *count};
}

using Division = std::map<std::size_t, fs::path>;  // shards by their index

bool is_complete(const Division& division, std::size_t count) {
  std::error_code error;
  return division.size() == count &&
         std::all_of(division.begin(), division.end(), [&](const auto& shard) {
           return fs::exists(shard.second / "runs.parquet", error);
         });
}

}  // namespace

std::vector<fs::path> find_shards(const std::vector<fs::path>& directories) {
  std::vector<fs::path> out;
  std::map<std::size_t, Division> divisions;  // by how many shards
  for (const fs::path& directory : directories) {
    bool holds_some = false;
    std::error_code error;
    for (fs::directory_iterator it(directory, error), end; !error && it != end; it.increment(error))
      if (const auto shard = shard_of(it->path().filename().string())) {
        divisions[shard->count][shard->index] = it->path();
        holds_some = true;
      }
    if (!holds_some) out.push_back(directory);
  }
  if (divisions.size() > 1)
    std::erase_if(divisions, [](const auto& d) { return !is_complete(d.second, d.first); });
  if (divisions.size() > 1 || (divisions.empty() && out.size() < directories.size()))
    throw UserError("merge", "",
                    fmt::format("the sweep is divided in several ways, {} of them complete: name "
                                "the directories of the shards to join",
                                divisions.size()));
  for (const auto& [count, division] : divisions)
    for (const auto& [index, path] : division) out.push_back(path);
  return out;
}

SweepTables merge_sweeps(const std::vector<fs::path>& directories) {
  std::vector<Part> parts;
  std::vector<Problem> problems;
  for (const fs::path& directory : directories) try {
      parts.push_back(read_part(directory));
    } catch (const UserError& e) {
      problems.insert(problems.end(), e.problems().begin(), e.problems().end());
    }
  if (!problems.empty()) throw UserError(problems);
  if (parts.empty()) throw UserError("merge", "", "expected directories of shards");
  require_alike(parts);
  const auto owner = owners(parts);
  require_all(owner, parts.front());
  tables::Metadata metadata;
  for (const auto& [key, value] : parts.front().runs.metadata)
    if (!key.starts_with("ARROW:")) metadata.emplace(key, value);
  metadata["inputs"] = joined_inputs(parts);
  return {joined(parts, owner, &Part::runs), joined(parts, owner, &Part::stages), metadata};
}

}  // namespace mllmsim::sweep
