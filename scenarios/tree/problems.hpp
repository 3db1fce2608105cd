// Everything found wrong in one reading, reported together.
#pragma once

#include <algorithm>
#include <map>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "scenarios/tree/node.hpp"
#include "sim/base/errors.hpp"

namespace mllmsim::scenarios {

class Problems {
 public:
  void add(const Position& position, std::string key, std::string message) {
    found_.push_back({position, {position.text(), std::move(key), std::move(message)}});
  }
  void add(const UserError& error) {
    for (const Problem& p : error.problems()) {
      Position position;
      position.file = p.where;
      found_.push_back({std::move(position), p});
    }
  }
  std::size_t count() const { return found_.size(); }

  // File by file in the order they came up, each from top to bottom.
  void throw_if_any() const {
    if (found_.empty()) return;
    std::map<std::string, std::size_t> file_order;
    for (const Found& f : found_) file_order.emplace(f.position.file, file_order.size());
    const auto order = [&](const Found& f) {
      return std::tuple(file_order.at(f.position.file), f.position.line, f.position.column);
    };
    std::vector<Found> sorted = found_;
    std::stable_sort(sorted.begin(), sorted.end(),
                     [&](const Found& a, const Found& b) { return order(a) < order(b); });
    std::vector<Problem> all;
    for (Found& f : sorted) all.push_back(std::move(f.problem));
    throw UserError(all);
  }

 private:
  struct Found {
    Position position;
    Problem problem;
  };
  std::vector<Found> found_;
};

}  // namespace mllmsim::scenarios
