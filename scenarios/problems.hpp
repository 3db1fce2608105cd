// Everything found wrong in one reading, reported together.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "scenarios/node.hpp"
#include "sim/errors.hpp"

namespace mllmsim {

class Problems {
 public:
  void add(const Position& position, std::string key, std::string message) {
    all_.push_back({position.text(), std::move(key), std::move(message)});
  }
  void add(const UserError& error) {
    all_.insert(all_.end(), error.problems().begin(), error.problems().end());
  }
  std::size_t count() const { return all_.size(); }
  void throw_if_any() const {
    if (!all_.empty()) throw UserError(all_);
  }

 private:
  std::vector<Problem> all_;
};

}  // namespace mllmsim
