// A file while it is written, piece by piece: on disk beside the file it is to become, until it is
// put in place. Without that it leaves nothing, and what was there before stays.
//
// A device or pipe (/dev/stdout) cannot be replaced: it is written in place.
#pragma once

#include <filesystem>
#include <memory>
#include <string_view>

namespace mllmsim {

class PendingFile {
 public:
  // All throw EnvironmentError naming the path and the reason.
  explicit PendingFile(const std::filesystem::path& path);
  ~PendingFile();
  void write(std::string_view contents);
  void close();  // all of it is on disk
  void put_in_place();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace mllmsim
