#include <gtest/gtest.h>

#include <boost/json/serialize.hpp>
#include <map>
#include <set>

#include "cost_models/calibrate/host/host_collectives.hpp"
#include "cost_models/calibrate/plan.hpp"
#include "cost_models/calibrate/rendezvous.hpp"
#include "cost_models/kernels/kernel_costs.hpp"
#include "sim/base/errors.hpp"
#include "tests/temporary_directory.hpp"

namespace mllmsim::calibrate {
using namespace costs;
namespace {

using host::ThreadGroup;

// Three ranks with four floats each; rank r holds r + 1 everywhere.
ThreadGroup three_ranks(CollectiveOp op) {
  ThreadGroup group({op, Bytes{48}, {3, 1, 1}});
  for (int rank = 0; rank < 3; ++rank)
    std::fill(group.input(rank).begin(), group.input(rank).end(), static_cast<float>(rank + 1));
  group.run(2);
  return group;
}

TEST(HostCollectives, AllGatherHasEveryPart) {
  ThreadGroup group = three_ranks(CollectiveOp::all_gather);
  for (int rank = 0; rank < 3; ++rank)
    EXPECT_EQ(group.output(rank), (std::vector<float>{1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3}));
}

TEST(HostCollectives, ReduceScatterSumsTheOwnPart) {
  ThreadGroup group = three_ranks(CollectiveOp::reduce_scatter);
  EXPECT_EQ(group.output(1)[4], 6);
  EXPECT_EQ(group.output(1)[7], 6);
}

TEST(HostCollectives, AllReduceSumsEverything) {
  ThreadGroup group = three_ranks(CollectiveOp::all_reduce);
  for (int rank = 0; rank < 3; ++rank) EXPECT_EQ(group.output(rank), std::vector<float>(12, 6.0f));
}

// What of a task is not a size: "part", "op", "pass", "causal" and so on.
std::string kind(const Task& task) {
  std::string text;
  for (const auto& [field, value] : to_json(task))
    if (!value.is_int64()) text += boost::json::serialize(value);
  return text;
}

// One small task of every kind yields positive figures.
TEST(HostBackend, MeasuresEveryKindOfTask) {
  const auto backend = make_host_backend(2);
  PlanOptions options;
  options.gpus = 2;
  options.most_flops = 1e7;
  options.most_bytes = 1e6;
  options.shapes = {OverlapTask{{CollectiveOp::all_reduce, Bytes{4096}, {2, 1, 1}}, {16, 16, 16}},
                    GemmTask{{16, 16, 16, GemmPass::forward, 1}, Mode::sustained},
                    AttentionTask{16, 2, 4, 2, 8, true, false},
                    AttentionTask{16, 2, 4, 2, 8, true, true},
                    MemoryTask{MemoryOp::cross_entropy, 4, 80, false},
                    MemoryTask{MemoryOp::optimizer, 1, 80, false}};
  std::set<std::string> seen;
  for (const Task& task : make_plan(options).tasks) {
    if (is_quantised(format(task))) {
      EXPECT_THROW(backend->prepare(task), CannotMeasure);
      continue;
    }
    if (!seen.insert(kind(task)).second) continue;
    for (double sample : backend->prepare(task)->run(2)) EXPECT_GT(sample, 0) << key(task);
  }
  // gemm 4, attention 2, memory-bound 8, collective 4, p2p, launch, copy 3, overlap
  EXPECT_EQ(seen.size(), 24u);
}

TEST(HostBackend, HeaderSaysItIsACpuInFloat32) {
  const Header header = make_host_backend(1)->header();
  const std::map<std::string, std::string> fields(header.identity.begin(), header.identity.end());
  EXPECT_EQ(fields.at("backend"), "host");
  EXPECT_EQ(fields.at("precision"), "float32");
}

TEST(Rendezvous, NodesReadWhatNodeZeroLeft) {
  const TemporaryDirectory directory;
  const std::string file = (directory / "meet").string();
  const std::string bytes("\0id\n", 4);
  EXPECT_EQ(exchange({file, 2, 0}, "n2r16", bytes), bytes);
  EXPECT_EQ(exchange({file, 2, 1}, "n2r16", ""), bytes);
  EXPECT_THROW(exchange({file, 2, 0}, "n2r16", bytes), UserError);  // left from an earlier run
  clean_up({file, 2, 0}, "n2r16");
  EXPECT_TRUE(std::filesystem::is_empty(directory.path()));
}

}  // namespace
}  // namespace mllmsim::calibrate
