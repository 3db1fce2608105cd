// Tables of a run or a sweep, changed as an input says. Bytes of a Parquet file that are changed at
// random hardly ever leave a readable file; so an input is a list of edits, one per line:
//
//   spans.start_ns[3] = -5       a cell; without [3] all cells of the column
//   drop spans.name              a column
//   rename spans.name = other
//   type spans.bytes = text      also int, float, flag; what is in it becomes 0 or ""
//   rows spans = 0               so many rows: cut off, or the last one repeated
//   meta runs.scenario = a\nb    of the file; \n is a line end
//   lose spans                   the file
//
// Lines that are none of these, and names that are not there, change nothing.
#pragma once

#include <filesystem>
#include <map>
#include <set>
#include <string>

#include "sim/tables/parquet.hpp"

namespace mllmsim::fuzz {

using Files = std::map<std::string, tables::ParquetFile>;  // by name: "spans"

// A directory that holds some files, each as its last edit left it.
class EditedDirectory {
 public:
  // Writes NAME.parquet for each; `name` may have folders in it.
  EditedDirectory(std::filesystem::path directory, Files files);

  // As the edits say, from the original files.
  void change(const std::string& edits);

 private:
  std::filesystem::path file(const std::string& name) const;
  std::filesystem::path original_file(const std::string& name) const;

  std::filesystem::path directory_;
  Files files_;
  std::set<std::string> changed_;
};

}  // namespace mllmsim::fuzz
