// Three kinds of failure, three exits.
//
//   UserError         the input is wrong; every problem found is listed           exit 2
//   EnvironmentError  disk full, no gnuplot, unreadable file                      exit 3
//   InternalError     our bug, from check(); checks stay on in release builds     abort
//
// "Does not fit in memory" is none of these: it is a result.
#pragma once

#include <stdexcept>
#include <string>
#include <vector>

namespace mllmsim {

struct Problem {
  std::string where;    // "runs/a.toml:12:3", or "command line"
  std::string key;      // "parallelism.tensor_model_parallel_size"; may be empty
  std::string message;  // what was expected and what was found

  std::string text() const {
    std::string out = where.empty() ? "" : where + ": ";
    if (!key.empty()) out += key + ": ";
    return out + message;
  }
};

class UserError : public std::runtime_error {
 public:
  explicit UserError(std::vector<Problem> problems)
      : std::runtime_error(joined(problems)), problems_(std::move(problems)) {}
  UserError(std::string where, std::string key, std::string message)
      : UserError(std::vector<Problem>{{std::move(where), std::move(key), std::move(message)}}) {}

  const std::vector<Problem>& problems() const { return problems_; }

 private:
  static std::string joined(const std::vector<Problem>& problems) {
    std::string out;
    for (const Problem& p : problems) out += (out.empty() ? "" : "\n") + p.text();
    return out;
  }
  std::vector<Problem> problems_;
};

class EnvironmentError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

class InternalError : public std::logic_error {
 public:
  using std::logic_error::logic_error;
};

inline void check(bool ok, const char* what) {
  if (!ok) throw InternalError(what);
}
inline void check(bool ok, const std::string& what) {
  if (!ok) throw InternalError(what);
}

}  // namespace mllmsim
