// What all formats of lengths files share: checking records, and collecting what is wrong with
// them.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "sim/base/errors.hpp"
#include "strategies/data/samples.hpp"

namespace mllmsim::scenarios {

inline constexpr const char* kTilesKey = "vit_num";
inline constexpr const char* kTokensKey = "token_num";
// Of a sample. Beyond that it is a mistake, and sums stay small.
inline constexpr std::int64_t kMostTokens = 100'000'000;

// Values of one record as they were found; empty if there was no such key.
struct Record {
  std::optional<std::int64_t> tiles, tokens;
};

class Records {
 public:
  // `unit` is what positions count: "record" or "line".
  Records(const std::filesystem::path& file, const char* unit, std::vector<data::Sample>& out)
      : file_(file.string()), unit_(unit), out_(out) {}

  void add(const Record& record, std::size_t position);
  void problem(std::size_t position, std::string key, std::string message);
  void throw_if_any() const;

 private:
  bool right(const std::optional<std::int64_t>& value, std::int64_t least, const char* key,
             std::size_t position);

  std::string file_;
  const char* unit_;
  std::vector<data::Sample>& out_;
  std::vector<Problem> problems_;  // the first few
  std::size_t count_ = 0;          // all of them
};

// One reader per format; each appends to `out`.
void read_json_records(const std::filesystem::path& file, std::vector<data::Sample>& out);
void read_csv_records(const std::filesystem::path& file, std::vector<data::Sample>& out);

}  // namespace mllmsim::scenarios
