#include "results/sweep/record.hpp"

#include <concepts>
#include <cstring>
#include <optional>

#include "results/run/run_fields.hpp"
#include "sim/base/hash.hpp"

namespace mllmsim::sweep {
namespace {

template <class T>
concept Number = std::is_arithmetic_v<T>;

struct Encode {
  std::string& out;

  template <Number T>
  void put(T value) {
    out.append(reinterpret_cast<const char*>(&value), sizeof value);
  }
  void put(const std::string& text) {
    put(static_cast<std::uint64_t>(text.size()));
    out += text;
  }
  template <class T>
  void field(std::string_view, const T& value) {
    put(results::plain(value));
  }
  template <class T>
  void derived(std::string_view, const T&) {}
};

struct Decode {
  std::string_view in;
  bool whole = true;

  template <Number T>
  void get(T& value) {
    if (in.size() < sizeof value) return fail();
    std::memcpy(&value, in.data(), sizeof value);
    in.remove_prefix(sizeof value);
  }
  void get(bool& value) {  // any other byte in a bool would be undefined behaviour
    std::uint8_t byte = 0;
    get(byte);
    if (byte > 1) return fail();
    value = byte == 1;
  }
  void get(std::string& text) {
    std::uint64_t size = 0;
    get(size);
    if (in.size() < size) return fail();
    text = in.substr(0, size);
    in.remove_prefix(size);
  }
  template <class Tag, class Rep>
  void field(std::string_view name, Quantity<Tag, Rep>& to) {
    field(name, to.value);
  }
  template <NamedEnum Enum>
  void field(std::string_view, Enum& to) {
    std::string name;
    get(name);
    const std::optional<Enum> value = named<Enum>(name);
    if (!value) return fail();
    to = *value;
  }
  template <class T>
  void field(std::string_view, T& to) {
    std::remove_cvref_t<decltype(results::plain(to))> value{};
    get(value);
    to = static_cast<T>(value);
    if constexpr (std::integral<T>)  // a number that the field cannot hold
      if (results::plain(to) != value) fail();
  }
  template <class T>
  void derived(std::string_view, const T&) {}
  void fail() {
    whole = false;
    in = {};
  }
};

struct Layout {
  std::string& text;

  template <class T>
  void field(std::string_view name, const T& value) {
    text.append(name).append(typeid(results::plain(value)).name()).append(" ");
  }
  template <class T>
  void derived(std::string_view, const T&) {}
};

template <class Run, class Visitor>
void each_run_field(Run& run, Visitor& visit) {
  results::each_key(run, visit);
  results::each_field(run, visit);
}

}  // namespace

std::string encode(const std::string& key, const results::RunResult& run) {
  std::string out;
  Encode visit{out};
  visit.put(key);
  each_run_field(run, visit);
  visit.put(static_cast<std::uint64_t>(run.stages.size()));
  for (const results::StageRow& stage : run.stages) results::each_field(stage, visit);
  return out;
}

std::optional<DecodedRecord> decode(std::string_view bytes) {
  DecodedRecord record;
  Decode visit{bytes};
  visit.get(record.key);
  each_run_field(record.run, visit);
  std::uint64_t stages = 0;
  visit.get(stages);
  for (; stages > 0 && visit.whole; --stages)
    results::each_field(record.run.stages.emplace_back(), visit);
  if (!visit.whole || !visit.in.empty()) return std::nullopt;
  return record;
}

std::uint64_t record_layout() {
  std::string text;
  Layout visit{text};
  const results::RunResult run;
  const results::StageRow stage;
  each_run_field(run, visit);
  results::each_field(stage, visit);
  return fnv1a(text);
}

}  // namespace mllmsim::sweep
