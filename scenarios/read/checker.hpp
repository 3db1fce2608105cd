// The checks behind check_parallelism and check_data, one function each, in files named after what
// they look at (parallelism_checks.cpp, ...).
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "scenarios/tree/node.hpp"
#include "scenarios/tree/problems.hpp"
#include "strategies/job/job.hpp"

namespace mllmsim::scenarios {

class Checker {
 public:
  Checker(const Job& job, const Node& run, Problems& problems)
      : job_(job), run_(run), problems_(problems) {}

  void batch() const;
  void schedule() const;
  void micro_batch_groups() const;
  void size() const;
  void given_times() const;
  void layers() const;
  void sharding() const;
  void offload() const;
  void activation_offload() const;
  void context_parallel() const;
  void tensor_parallel() const;
  void parallel_branches() const;
  void expert_parallel() const;
  void recompute() const;
  void precision() const;
  void training() const;
  void cross_attention() const;
  void data() const;

 private:
  bool packs_decide() const;
  void splits(const std::vector<const Transformer*>& kinds, const std::string& module) const;
  void tile_sizes() const;
  void tokens_per_tile(const data::DataSet& set) const;

  template <class Predicate>
  bool any_llm_block(Predicate predicate) const {
    const auto kinds = block_kinds(job_.model.llm.blocks, job_.model.llm.other_blocks);
    return std::any_of(kinds.begin(), kinds.end(),
                       [&](const Transformer* t) { return predicate(*t); });
  }
  void add(const std::string& key, std::string message) const {
    problems_.add(nearest(run_, key).position, key, std::move(message));
  }

  const Job& job_;
  const Node& run_;
  Problems& problems_;
};

}  // namespace mllmsim::scenarios
