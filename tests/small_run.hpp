// Parts of a small run, as text: 2 + 4 layers on 8 GPUs, tp 2, pp 2, dp 2.
#pragma once

#include <string>

namespace mllmsim {

inline const std::string kSmallModel = R"([model.llm]
num_hidden_layers = 4
hidden_size = 64
num_attention_heads = 4
intermediate_size = 256
vocab_size = 1000
max_position_embeddings = 128

[[model.encoders]]
num_hidden_layers = 2
hidden_size = 32
num_attention_heads = 4
intermediate_size = 128
image_size = 8
patch_size = 2
pixel_shuffle = 0.5
projector = "mlp2"

)";

inline const std::string kSmallTraining = R"([parallelism]
tensor_model_parallel_size = 2
pipeline_model_parallel_size = 2
micro_batch_size = 1
global_batch_size = 8

[data]
samples = 100
tokens_per_sample = 64
tiles_per_sample = 2

)";

}  // namespace mllmsim
