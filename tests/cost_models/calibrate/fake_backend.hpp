// A backend whose time is a number: every repetition takes what the test says.
#pragma once

#include <deque>
#include <map>

#include "cost_models/calibrate/measure.hpp"

namespace mllmsim::calibrate {
using namespace costs;

class FakeBackend : public Backend {
 public:
  explicit FakeBackend(std::vector<double> durations) : durations_(std::move(durations)) {}

  Header header() const override { return {{{"gpu", "fake"}, {"driver", "1"}}, 1000}; }
  int devices() const override { return 8; }
  std::unique_ptr<Prepared> prepare(const Task& task) override {
    if (part(task) == refuse) throw CannotMeasure("refused");
    ++prepared[key(task)];
    return std::make_unique<Repeater>(*this);
  }
  // Node 0 leaves its decisions in a queue, from which another node takes them.
  double agree(double value) override {
    if (!decisions) return value;
    if (leads) return decisions->push_back(value), value;
    value = decisions->at(0);
    decisions->pop_front();
    return value;
  }
  Clock clock() {
    return [this] { return now_; };
  }

  std::string refuse;                   // a part that cannot be measured
  std::map<std::string, int> prepared;  // how often each task was
  int repetitions = 0;
  std::deque<double>* decisions = nullptr;
  bool leads = true;

 private:
  struct Repeater : Prepared {
    explicit Repeater(FakeBackend& b) : backend(b) {}
    std::vector<double> run(int n) override {
      std::vector<double> samples;
      for (int i = 0; i < n; ++i) {
        const auto next = static_cast<std::size_t>(backend.repetitions++);
        samples.push_back(backend.durations_[next % backend.durations_.size()]);
        backend.now_ += samples.back();
      }
      return samples;
    }
    FakeBackend& backend;
  };

  std::vector<double> durations_;
  double now_ = 0;
};

}  // namespace mllmsim::calibrate
