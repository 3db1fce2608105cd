// Parameter counts against what the models' authors say,
// and what is trained decides where gradients flow.
#include "sim/world/model.hpp"

#include <gtest/gtest.h>

namespace mllmsim {
namespace {

Model gpt3() {
  Model m;
  m.llm.blocks = {.num_hidden_layers = 96,
                  .hidden_size = 12288,
                  .num_attention_heads = 96,
                  .num_key_value_heads = 96,
                  .head_dim = 128,
                  .intermediate_size = 49152};
  m.llm.vocab_size = 51200;
  m.llm.max_position_embeddings = 2048;
  m.llm.tie_word_embeddings = true;
  return m;
}

// 12 L h^2 (1 + 13/(12 h) + (V + s)/(12 L h)), Narayanan et al. 2021, equation 2: 174.6 billion.
TEST(Model, Gpt3HasItsPublishedParameters) {
  EXPECT_NEAR(static_cast<double>(parameters(gpt3())), 174.6e9, 0.05e9);
}

Model small() {
  Model m = gpt3();
  Encoder e;
  e.blocks = {.num_hidden_layers = 2,
              .hidden_size = 64,
              .num_attention_heads = 4,
              .num_key_value_heads = 4,
              .head_dim = 16,
              .intermediate_size = 256};
  e.projector_sizes = {64, 12288};
  m.encoders = {e};
  return m;
}

TEST(Model, LayersComeInTheOrderOfData) {
  Model m = small();
  m.llm.blocks.num_hidden_layers = 1;
  std::string kinds;
  for (const Layer& l : layers_of(m)) kinds += "ebph"[static_cast<int>(l.kind)];
  EXPECT_EQ(kinds, "ebbpebh");
}

TEST(Model, GradientsFlowOnlyToWhatIsTrainedBefore) {
  Model m = small();
  const Layer vit_block{LayerKind::block, 0, 1}, projector{LayerKind::projector, 0, 0};
  const Layer llm_block{LayerKind::block, 1, 0};
  m.encoders[0].trained = false;
  EXPECT_FALSE(needs_input_gradient(m, vit_block));
  EXPECT_FALSE(needs_input_gradient(m, projector));
  m.llm.trained = false;
  EXPECT_TRUE(needs_input_gradient(m, llm_block));  // the projector is still trained
  m.encoders[0].projector_trained = false;
  EXPECT_FALSE(needs_input_gradient(m, llm_block));
}

}  // namespace
}  // namespace mllmsim
