// The two archives behind read_calibration(), read_estimate() and to_json(). Units follow from
// types: Seconds are microseconds in the file, BytesPerSecond GB/s, FlopsPerSecond TFLOP/s.
#include <cmath>
#include <concepts>
#include <optional>
#include <type_traits>

#include "cost_models/calibration/calibration_fields.hpp"
#include "cost_models/kernels/names.hpp"
#include "sim/base/files.hpp"
#include "sim/base/json_reader.hpp"
#include "sim/base/json_writer.hpp"

namespace mllmsim::costs {
namespace {

constexpr int kDigits = 6;  // more than any measurement has

class Reader {
 public:
  explicit Reader(JsonObject object) : object_(std::move(object)) {}

  void operator()(std::string_view key, double& v) { v = object_.number(key); }
  void operator()(std::string_view key, bool& v) { v = object_.flag(key); }
  void operator()(std::string_view key, std::string& v) { v = object_.text(key); }
  void operator()(std::string_view key, std::int64_t& v) { v = object_.integer(key); }
  void operator()(std::string_view key, int& v) {
    const std::int64_t wide = object_.integer(key);
    v = static_cast<int>(wide);
    require(v == wide, key, "too large");
  }
  void operator()(std::string_view key, Seconds& v) {
    v = {object_.number(key) * 1e-6};
    require(v.value >= 0, key, "expected a time of 0 or more");
  }
  void operator()(std::string_view key, BytesPerSecond& v) { v = {object_.positive(key) * 1e9}; }
  void operator()(std::string_view key, FlopsPerSecond& v) { v = {object_.positive(key) * 1e12}; }
  void operator()(std::string_view key, std::vector<double>& v) { v = object_.numbers(key); }
  template <class Enum>
  requires std::is_enum_v<Enum>
  void operator()(std::string_view key, Enum& v) { v = object_.choice<Enum>(key); }
  template <class T>
  void operator()(std::string_view key, std::vector<T>& v) {
    for (JsonObject& item : object_.objects(key)) v.push_back(read<T>(std::move(item)));
  }
  template <class T>
  requires std::is_class_v<T>
  void operator()(std::string_view key, T& v) { v = read<T>(object_.object(key)); }

  template <class T>
  void optional(std::string_view key, T& v) {
    if (object_.has(key)) (*this)(key, v);
  }
  template <class T>
  void optional(std::string_view key, std::optional<T>& v) {
    if (object_.has(key)) (*this)(key, v.emplace());
  }
  void positive(std::string_view key, double& v) { v = object_.positive(key); }
  void require(bool ok, std::string_view key, const char* message) {
    if (!ok) object_.fail(key, message);
  }
  // One entry at least for every enumerator up to `last`.
  template <class T, class Enum>
  void require_each(const std::vector<T>& items, std::string_view key, Enum last) {
    for (int i = 0; i <= static_cast<int>(last); ++i) {
      bool found = false;
      for (const T& item : items) found |= item.op == static_cast<Enum>(i);
      if (!found) object_.fail(key, "no entry for " + std::string(name_of(static_cast<Enum>(i))));
    }
  }

  template <class T>
  static T read(JsonObject object) {
    T value{};
    Reader reader(std::move(object));
    describe(reader, value);
    reader.object_.finish();
    return value;
  }

 private:
  JsonObject object_;
};

class Writer {
 public:
  void operator()(std::string_view key, double v) { out_[key] = v; }
  void operator()(std::string_view key, bool v) { out_[key] = v; }
  void operator()(std::string_view key, std::string& v) { out_[key] = v; }
  void operator()(std::string_view key, std::int64_t v) { out_[key] = v; }
  void operator()(std::string_view key, int v) { out_[key] = v; }
  void operator()(std::string_view key, Seconds v) { out_[key] = v.value * 1e6; }
  void operator()(std::string_view key, BytesPerSecond v) { out_[key] = v.value * 1e-9; }
  void operator()(std::string_view key, FlopsPerSecond v) { out_[key] = v.value * 1e-12; }
  void operator()(std::string_view key, std::vector<double>& v) {
    out_[key] = boost::json::array(v.begin(), v.end());
  }
  template <class Enum>
  requires std::is_enum_v<Enum>
  void operator()(std::string_view key, Enum v) { out_[key] = name_of(v); }
  template <class T>
  void operator()(std::string_view key, std::vector<T>& v) {
    boost::json::array& list = out_[key].emplace_array();
    for (T& item : v) list.push_back(write(item));
  }
  template <class T>
  requires std::is_class_v<T>
  void operator()(std::string_view key, T& v) { out_[key] = write(v); }

  void optional(std::string_view key, FlopsPerSecond v) {
    if (v.value > 0) (*this)(key, v);
  }
  void optional(std::string_view key, NumberFormat v) {  // the default is left out
    if (v != NumberFormat::bf16) (*this)(key, v);
  }
  template <class T>
  void optional(std::string_view key, std::optional<T>& v) {
    if (v) (*this)(key, *v);
  }
  template <class T>
  void optional(std::string_view key, std::vector<T>& v) {
    if (!v.empty()) (*this)(key, v);
  }
  void positive(std::string_view key, double v) { out_[key] = v; }
  void require(bool, std::string_view, const char*) {}
  template <class T, class Enum>
  void require_each(const std::vector<T>&, std::string_view, Enum) {}

  template <class T>
  static boost::json::value write(T& value) {
    Writer writer;
    describe(writer, value);
    return std::move(writer.out_);
  }

 private:
  boost::json::object out_;
};

}  // namespace

Calibration parse_calibration(const std::string& text, const std::string& file) {
  const boost::json::value document = parse_json(text, file);
  return Reader::read<Calibration>(JsonObject(document, file));
}

Calibration read_calibration(const std::filesystem::path& file) {
  return parse_calibration(read_file(file, kLargeFile), file.string());
}

Estimate read_estimate(const std::filesystem::path& file) {
  const boost::json::value document = parse_json(read_file(file, kLargeFile), file.string());
  return Reader::read<Estimate>(JsonObject(document, file.string()));
}

std::string to_json(const Calibration& calibration) {
  Calibration copy = calibration;
  return pretty_json(Writer::write(copy), kDigits);
}

}  // namespace mllmsim::costs
