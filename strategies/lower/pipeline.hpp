// Activations forward and their gradients backward between neighbouring model stages.
//
// A send and its receive are the two sides of one transfer. With overlap_p2p receives are posted
// early, so a transfer starts when its sender is ready, and computation goes on meanwhile.
// Otherwise passes and exchanges take turns, as in Megatron before mid-2023 and DeepSpeed: after
// each pass (after each pair of forward and backward of interleaved 1F1B) a rank sends what it
// made, receives what its next turn needs, and waits for both; so neighbours wait for each other.
// Megatron's rank placement decides which links a transfer crosses.
//
// Given times overlap, and their transfers use no links.
#pragma once

#include <vector>

#include "cost_models/layers/layer_costs.hpp"
#include "strategies/lower/communication.hpp"
#include "strategies/lower/step_builder.hpp"

namespace mllmsim::lower {

void add_given_pipeline(StepBuilder& step, const GivenTimes& times);
void add_pipeline(StepBuilder& step, costs::LayerCosts& layers, Communication& communication);

// What passes between two neighbouring model stages, of all tp ranks; 0 if it is a gradient that
// nothing needs.
Bytes boundary(StepBuilder& step, const costs::LayerCosts& layers, int from_stage, int to_stage,
               int replica, std::uint32_t micro_batch);

// A rank's passes by turn: the index of each turn's first pass, and the number of passes.
std::vector<std::size_t> turns_of(const std::vector<Pass>& passes, std::uint32_t chunks);

}  // namespace mllmsim::lower
