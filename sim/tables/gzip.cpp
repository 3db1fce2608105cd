#include "sim/tables/gzip.hpp"

#include <arrow/util/compression.h>

#include "sim/base/errors.hpp"

namespace mllmsim::tables {

std::string gzip(std::string_view text) {
  const auto fail = [](const arrow::Status& status) {
    throw EnvironmentError("cannot compress with gzip: " + status.ToString());
  };
  auto codec = arrow::util::Codec::Create(arrow::Compression::GZIP);
  if (!codec.ok()) fail(codec.status());
  const auto* data = reinterpret_cast<const std::uint8_t*>(text.data());
  const auto size = static_cast<std::int64_t>(text.size());
  const std::int64_t most = (*codec)->MaxCompressedLen(size, data);
  std::string out(static_cast<std::size_t>(most), '\0');
  const auto length =
      (*codec)->Compress(size, data, most, reinterpret_cast<std::uint8_t*>(out.data()));
  if (!length.ok()) fail(length.status());
  out.resize(static_cast<std::size_t>(*length));
  return out;
}

}  // namespace mllmsim::tables
