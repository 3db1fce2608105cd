// gzip, through Arrow's codec: no library of our own for one file format.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>

namespace mllmsim::tables {

// The same bytes for the same text. Throws EnvironmentError if this Arrow was built without it.
std::string gzip(std::string_view text);

// Piece by piece, for what is large: quicker, and not quite as small. `to` is given what is
// compressed so far.
class GzipStream {
 public:
  explicit GzipStream(std::function<void(std::string_view)> to);
  ~GzipStream();
  void add(std::string_view text);
  void finish();

 private:
  struct Compressor;
  std::unique_ptr<Compressor> compressor_;
  std::function<void(std::string_view)> to_;
};

}  // namespace mllmsim::tables
