// The keys that an llm and an encoder share, and the kinds of block they describe.
//
//   sliding_window, attention_chunk_size   on all blocks but full_attention_layers
//   num_experts, ...                       on all blocks but the first first_k_dense_replace,
//                                          mlp_only_layers, and those where (i + 1) is no multiple
//                                          of decoder_sparse_step
//   num_nextn_predict_layers               as many blocks more, behind the others and like the last
//   lora                                   adapters on all blocks, whose own weights are frozen
#pragma once

#include "scenarios/tree/toml_reader.hpp"
#include "sim/world/model.hpp"

namespace mllmsim::scenarios {

// `more_layers`: those of multi-token prediction. Returns whether the module's own weights may be
// trained: false with adapters.
bool read_blocks(TableReader& reader, Transformer& first, OtherBlocks& others,
                 std::int64_t more_layers, Problems& problems);

}  // namespace mllmsim::scenarios
