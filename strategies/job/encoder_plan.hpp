// Encoders that run beside the LLM's pipeline on the same GPUs, with a parallel plan of their own.
//
// The ranks of an LLM pipeline form pp_llm / pp groups of `pp` neighbours, and the tp_llm GPUs of a
// rank form tp_llm / tp lanes of `tp` neighbours. Each lane of each group is an encoder pipeline.
// The lanes of a group work side by side on a wave: one micro-batch each, all at the pace of the
// slowest.
//
// What is decided is the order in which a rank issues kernels, never a time: `slots` merge the
// encoders' kernels into the LLM's. Everything is an index, so a plan holds for other micro-batches
// too.
#pragma once

#include <cstdint>
#include <vector>

#include "strategies/job/chunk.hpp"

namespace mllmsim {

struct EncoderWave {
  std::uint32_t group = 0;
  // Of the LLM pipeline, at most one per lane.
  std::vector<std::uint32_t> micro_batches;
};

// One wave through the encoder stage of a rank.
struct EncoderPass {
  bool forward = true;
  std::uint32_t wave = 0;
};

// `kernels` further kernels of a rank's encoder pass are issued before the LLM's kernel
// `llm_kernel` of its pass `llm_pass` (counted in the rank's schedule; past its end: after
// everything). The last slot of a pass takes all that is left of it, however many kernels its
// micro-batches turn out to need.
struct EncoderSlot {
  std::uint32_t pass = 0;  // in EncoderRank::passes
  std::uint32_t llm_pass = 0, llm_kernel = 0;
  std::uint32_t kernels = 0;
};

struct EncoderRank {
  std::vector<EncoderPass> passes;
  std::vector<EncoderSlot> slots;  // in the order they are issued
};

struct EncoderPlan {
  int tp = 1, pp = 1;
  std::vector<Chunk> stages;  // of the encoders' layers, `pp` of them
  std::vector<EncoderWave> waves;
  std::vector<EncoderRank> ranks;  // one per pipeline rank of the LLM

  int groups(int pp_llm) const { return pp_llm / pp; }
  const Chunk& stage_of(int rank) const { return stages[static_cast<std::size_t>(rank % pp)]; }
  // The LLM's rank that holds an encoder stage of a group.
  int rank_of(std::uint32_t group, int stage) const { return static_cast<int>(group) * pp + stage; }
};

}  // namespace mllmsim
