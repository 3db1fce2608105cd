// Tables in memory and in Parquet files. Arrow stays behind this header: only parquet.cpp knows it.
//
// A Table is a list of named columns of equal length. The same table gives the same bytes: no time
// stamps, fixed row groups, one thread, zstd. Nested columns are left out: our results have none.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

namespace mllmsim::tables {

// Strings that repeat (run names, kernel names): each distinct one is held once, as in the file.
class StringColumn {
 public:
  using value_type = std::string;

  void push_back(std::string_view value);
  std::size_t size() const { return indices_.size(); }
  const std::string& operator[](std::size_t row) const {
    return dictionary_[static_cast<std::size_t>(indices_[row])];
  }

  const std::vector<std::string>& dictionary() const { return dictionary_; }  // by first appearance
  const std::vector<std::int32_t>& indices() const { return indices_; }       // into dictionary()

  bool operator==(const StringColumn& o) const {
    return dictionary_ == o.dictionary_ && indices_ == o.indices_;
  }

 private:
  std::vector<std::string> dictionary_;
  std::vector<std::int32_t> indices_;
  std::unordered_map<std::string, std::int32_t> index_of_;
};

using Column =
    std::variant<std::vector<std::int64_t>, std::vector<double>, std::vector<bool>, StringColumn>;

struct Table {
  std::vector<std::pair<std::string, Column>> columns;

  // Cells that hold no value, by column; a list ends with its last null, and a column without any
  // has none. The column has 0, false or "" in their place.
  std::map<std::string, std::vector<bool>, std::less<>> nulls{};

  std::size_t rows() const;
  const Column* find(std::string_view name) const;  // nullptr if there is none
  bool is_null(std::string_view name, std::size_t row) const;
  void set_null(std::string_view name, std::size_t row);  // of one column in ascending order
  bool operator==(const Table&) const = default;
};

using Metadata = std::map<std::string, std::string>;

struct ParquetFile {
  Table table;
  Metadata metadata;
};

struct TableFile {
  std::filesystem::path path;
  Table table;
};

enum class Compression { zstd, none };  // none: quicker, for files that do not stay

// All throw EnvironmentError with the path and the reason; a UserError says if what is to be read
// is no regular file. Writing is atomic; files with the same metadata that belong together take
// their places when all are on disk, in this order.
void write_parquet(const Table& table, const Metadata& metadata, const std::filesystem::path& path,
                   Compression compression = Compression::zstd);
void write_parquet(std::span<const TableFile> files, const Metadata& metadata);
ParquetFile read_parquet(const std::filesystem::path& path);

}  // namespace mllmsim::tables
