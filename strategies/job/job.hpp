// What a strategy plans for: everything a scenario says, as values, after all defaults and
// overrides.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "sim/base/enum_names.hpp"
#include "sim/world/batch.hpp"
#include "sim/world/cluster.hpp"
#include "sim/world/model.hpp"
#include "sim/world/parallelism.hpp"
#include "sim/world/software.hpp"
#include "strategies/data/batching.hpp"
#include "strategies/data/samples.hpp"
#include "strategies/job/options.hpp"

namespace mllmsim {

// Every sample alike, or every sample of a data set with its own length.
struct Data {
  double samples = 0;                  // of the whole run, for GPU-days
  std::int64_t tokens_per_sample = 0;  // LLM tokens, image tokens included
  // A micro-batch has round(tiles_per_sample * its samples) tiles, per encoder.
  double tiles_per_sample = 0;

  std::shared_ptr<const data::DataSet> set;  // null: all samples alike
  data::Batching batching = data::Batching::random;
  std::int64_t length_bin = 512;  // tokens, of Batching::length
  data::Load pack_limits{};       // Q_v and Q_t; 0: chosen as the paper does
  data::Load keep_limits{};       // Q'_v and Q'_t of ISF; 0: the paper's
  // With packs: as many per step as come nearest to global_batch_size samples, so that steps can be
  // compared with those of other batchings; otherwise as many as there would be without packs.
  bool equal_batch = false;
  std::int64_t steps = 0;  // to simulate, spread evenly over the pass; 0: all
};

// Which blocks recompute in full (Megatron's --recompute-method, transformer_block.py):
//   uniform  all, so many of a module's blocks in a chunk together: one input kept for each so many
//   block    so many of a module's blocks in a chunk, the first ones; the others not at all
enum class RecomputeMethod : std::uint8_t { uniform, block };
template <>
struct Names<RecomputeMethod> {
  static constexpr std::array<std::string_view, 2> list{"uniform", "block"};
};

// Recompute of each module, and optionally how many layers each pipeline stage recomputes (the
// first ones; the others do not). Empty: all.
struct RecomputePlan {
  Recompute encoder = Recompute::none;
  Recompute llm = Recompute::none;
  std::vector<int> layers_per_stage;  // counts blocks of any module
  RecomputeMethod method = RecomputeMethod::uniform;
  int num_layers = 1;

  bool in_units() const { return method == RecomputeMethod::uniform && num_layers > 1; }

  bool operator==(const RecomputePlan&) const = default;
};

// Instead of a cost model: the times of one chunk, given. One entry: the same on every stage.
struct GivenTimes {
  // Of a stage's chunk; with virtual stages each chunk takes this long.
  std::vector<Seconds> forward, backward;
  Seconds p2p{};
};

enum class Granularity : std::uint8_t { stage, kernel };
template <>
struct Names<Granularity> {
  static constexpr std::array<std::string_view, 2> list{"stage", "kernel"};
};

struct Job {
  std::string name;
  ClusterSpec cluster;
  Model model;  // no layers if times are given
  Data data;
  Parallelism parallelism;
  RecomputePlan recompute;
  Software software;
  std::optional<GivenTimes> given_times;
  std::string strategy = "baseline";
  Options options;  // the strategy's own
  Granularity granularity = Granularity::stage;
  std::uint64_t seed = 1;
};

}  // namespace mllmsim
