// Which part of a run's timeline is shown: a step, the ranks, a stretch of time.
//
// A lane is a simulated device: one pipeline stage of one replica, which stands for its tp ranks.
// If one replica was simulated, it stands for all. Ranks are global and placed as in the run: tp
// fastest, then dp, then pp, or pp before dp.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "results/run/run_result.hpp"
#include "sim/world/parallelism.hpp"

namespace mllmsim::charts {

struct Choice {
  std::optional<std::int64_t> step;  // otherwise the first stored
  // First and last; none: all, or one replica if they are many.
  std::vector<std::pair<std::int64_t, std::int64_t>> ranks;
  std::optional<std::pair<Seconds, Seconds>> zoom;
};

struct Lane {
  int replica = 0, stage = 0;
  std::int64_t first_rank = 0;  // of its tp ranks, in its own replica
  std::string label;            // "stage 1", with the replica if several are shown
  std::vector<const results::SpanRow*> spans;
};

struct View {
  std::int64_t step = 0;
  Time start{}, end{};
  std::vector<Lane> lanes;   // by replica, then stage
  std::size_t left_out = 0;  // lanes that are not shown because they are many
};

// How a run's ranks are placed; what a table does not have is read from its scenario.
Parallelism placement_of(const results::RunResult& run);

// UserError with what exists if the run has no such step or rank, or the stretch is empty.
View view_of(const results::RunResult& run, const Choice& choice);

// "0,3" or "0-7"; "0.5:1.2". UserError if they are something else.
std::vector<std::pair<std::int64_t, std::int64_t>> parse_ranks(const std::string& text);
std::pair<Seconds, Seconds> parse_zoom(const std::string& text);

}  // namespace mllmsim::charts
