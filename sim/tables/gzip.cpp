#include "sim/tables/gzip.hpp"

#include <arrow/util/compression.h>

#include <array>

#include "sim/base/errors.hpp"

namespace mllmsim::tables {
namespace {

constexpr int kQuick = 4;  // of 9 levels: a third of the time for a tenth more bytes

[[noreturn]] void gzip_failed(const arrow::Status& status) {
  throw EnvironmentError("cannot compress with gzip: " + status.ToString());
}

template <class T>
T gzipped(arrow::Result<T> result) {
  if (!result.ok()) gzip_failed(result.status());
  return *std::move(result);
}

const std::uint8_t* bytes_of(std::string_view text) {
  return reinterpret_cast<const std::uint8_t*>(text.data());
}

}  // namespace

struct GzipStream::Compressor {
  std::shared_ptr<arrow::util::Compressor> stream;
  std::array<std::uint8_t, 1 << 16> out{};

  std::string_view written(std::int64_t size) const {
    return {reinterpret_cast<const char*>(out.data()), static_cast<std::size_t>(size)};
  }
};

GzipStream::GzipStream(std::function<void(std::string_view)> to)
    : compressor_(std::make_unique<Compressor>()), to_(std::move(to)) {
  const auto codec = gzipped(arrow::util::Codec::Create(arrow::Compression::GZIP, kQuick));
  compressor_->stream = gzipped(codec->MakeCompressor());
}

GzipStream::~GzipStream() = default;

void GzipStream::add(std::string_view text) {
  while (!text.empty()) {
    const auto done = gzipped(compressor_->stream->Compress(
        static_cast<std::int64_t>(text.size()), bytes_of(text),
        static_cast<std::int64_t>(compressor_->out.size()), compressor_->out.data()));
    if (done.bytes_written > 0) to_(compressor_->written(done.bytes_written));
    text.remove_prefix(static_cast<std::size_t>(done.bytes_read));
  }
}

void GzipStream::finish() {
  for (bool more = true; more;) {
    const auto done = gzipped(compressor_->stream->End(
        static_cast<std::int64_t>(compressor_->out.size()), compressor_->out.data()));
    if (done.bytes_written > 0) to_(compressor_->written(done.bytes_written));
    more = done.should_retry;
  }
}

std::string gzip(std::string_view text) {
  const auto codec = gzipped(arrow::util::Codec::Create(arrow::Compression::GZIP));
  const auto size = static_cast<std::int64_t>(text.size());
  const std::int64_t most = codec->MaxCompressedLen(size, bytes_of(text));
  std::string out(static_cast<std::size_t>(most), '\0');
  const std::int64_t length = gzipped(
      codec->Compress(size, bytes_of(text), most, reinterpret_cast<std::uint8_t*>(out.data())));
  out.resize(static_cast<std::size_t>(length));
  return out;
}

}  // namespace mllmsim::tables
