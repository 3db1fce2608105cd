// One JSON object of a config.json: its keys by type, and a look at those nobody asked for.
//
// A key left over whose name says that it changes what a layer costs (experts, windows, latent
// ranks, state-space layers, gates, norms and biases, further towers) is a problem, unless its
// value is none, false, 0 or empty: what is not modelled is refused, not dropped.
#pragma once

#include <boost/json.hpp>
#include <initializer_list>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "scenarios/tree/problems.hpp"

namespace mllmsim::scenarios {

class ConfigObject {
 public:
  // `prefix`: "vision_config." inside a multimodal config.
  ConfigObject(std::string file, std::string prefix, const boost::json::object& object,
               Problems& problems)
      : file_(std::move(file)), prefix_(std::move(prefix)), object_(object), problems_(problems) {}

  // The value; null if there is none or it is null. The key is known from here on.
  const boost::json::value* find(const char* key);
  bool has(const char* key) { return find(key) != nullptr; }
  // Whether the key is there, be it null.
  bool states(const char* key) const { return object_.contains(key); }

  // Each is empty if the key is missing, or wrong, which is a problem.
  std::optional<std::int64_t> number(const char* key);
  std::optional<double> real(const char* key);
  std::optional<bool> flag(const char* key);
  std::optional<std::string> text(const char* key);
  std::optional<std::vector<std::int64_t>> numbers(const char* key);
  std::optional<std::vector<std::string>> texts(const char* key);
  // A number, or a list of equal ones: image and patch sizes.
  std::optional<std::int64_t> side(const char* key);
  std::optional<ConfigObject> object(const char* key);

  void ignore(std::initializer_list<const char*> keys) { known_.insert(keys.begin(), keys.end()); }
  void refuse_rest(const std::string& model_type);

  void problem(const char* key, std::string message);
  std::string key(const char* name) const { return prefix_ + name; }
  const std::string& file() const { return file_; }

 private:
  void expected(const char* key, const char* what, const boost::json::value& found);

  std::string file_, prefix_;
  const boost::json::object& object_;
  Problems& problems_;
  std::set<std::string, std::less<>> known_;
};

}  // namespace mllmsim::scenarios
