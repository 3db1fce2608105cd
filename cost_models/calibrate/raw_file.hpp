// The raw measurements: JSON lines, the first {"header":{...}}, then one measurement per line.
//
// Every line is on disk (fsync) before the next measurement starts, so an interrupted run loses one
// at most: a torn last line is cut off on opening, what is complete is not measured again.
// A file of another device, driver or library version is refused:
// its lines must not be mixed with ours.
#pragma once

#include <filesystem>
#include <set>
#include <string>

#include "cost_models/calibrate/backend.hpp"
#include "cost_models/calibrate/statistics.hpp"

namespace mllmsim::calibrate {

class RawFile {
 public:
  // Creates or continues `path`. Throws UserError (foreign or damaged file) or EnvironmentError.
  RawFile(std::filesystem::path path, const Header& header, const std::string& date);
  ~RawFile();
  RawFile(const RawFile&) = delete;
  RawFile& operator=(const RawFile&) = delete;

  bool has(const Task& task) const { return measured_.count(key(task)) > 0; }
  std::size_t size() const { return measured_.size(); }
  void append(const Task& task, const Summary& summary);

 private:
  void read(const Header& header);
  void check_header(const std::string& line, const Header& header) const;
  void write_line(const std::string& line);
  [[noreturn]] void fail(const char* what) const;

  std::filesystem::path path_;
  int descriptor_ = -1;
  std::set<std::string> measured_;
};

}  // namespace mllmsim::calibrate
