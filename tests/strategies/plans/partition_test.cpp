#include "strategies/plans/partition.hpp"

#include <gtest/gtest.h>

namespace mllmsim {
using namespace data;
using namespace plans;
namespace {

using Sizes = std::vector<std::size_t>;

TEST(BlockGroups, KeepEmbeddingsProjectorsAndHeadsWithABlock) {
  const auto e = LayerKind::embedding, b = LayerKind::block, p = LayerKind::projector,
             h = LayerKind::head;
  std::vector<Layer> layers;
  for (LayerKind k : {e, b, b, p, e, b, b, h}) layers.push_back({k, 0, 0});
  EXPECT_EQ(block_groups(layers), (Sizes{2, 2, 2, 2}));
}

}  // namespace
}  // namespace mllmsim
