// Remedies tried: each is the scenario with something changed, simulated like any other. Of a pass
// over a data set 32 steps, spread evenly, stand for all unless data.steps says how many.
#pragma once

#include <vector>

#include "results/analysis/explain.hpp"

namespace mllmsim::analysis {

scenarios::Scenario in_few_steps(scenarios::Scenario scenario);

class Trial {
 public:
  Trial(const Read& read, const scenarios::Scenario& scenario, const results::RunResult& run,
        Progress* progress = nullptr)
      : read_(read), scenario_(scenario), run_(run), progress_(progress) {}

  // Those without a note.
  void simulate(std::vector<Remedy>& remedies) const;
  void simulate(Remedy& remedy) const;
  // If none of them makes the run fit with its strategy, adds those two at once that do.
  void simulate_pairs(std::vector<Remedy>& remedies) const;
  Progress* progress() const { return progress_; }

 private:
  const Read& read_;
  const scenarios::Scenario& scenario_;
  const results::RunResult& run_;
  Progress* progress_;
};

// How far samples must shrink for the run to fit, the rest as it is: the most tiles of a picture
// (mixtures) and the longest sample, or the length of samples that are all alike, found by
// bisection with a simulation each; none if the smallest does not fit either.
std::vector<Remedy> data_that_fits(const Trial& trial, const Job& job);

// What would make a run that does not fit do so: single changes that free memory, or two at once,
// then smaller samples; those that fit, the quickest first.
std::vector<results::FitRow> what_would_fit(const Read& read, const results::RunResult& run,
                                            Progress* progress = nullptr);

}  // namespace mllmsim::analysis
