// A small run made by hand: two stages, ten seconds per step, every field set so that a field lost
// on the way shows.
#pragma once

#include "results/run/run_result.hpp"

namespace mllmsim {
using namespace costs;
using namespace results;

inline RunResult example_run() {
  constexpr std::int64_t kGib = 1LL << 30;
  constexpr auto kWarmup = static_cast<std::size_t>(BubbleKind::pp_warmup);
  constexpr auto kCooldown = static_cast<std::size_t>(BubbleKind::pp_cooldown);
  RunResult run;
  run.name = "tiny";
  run.strategy = "baseline";
  run.model = "ViT-1B + GPT-7B";
  run.cluster = "a100-sxm";
  run.scenario_text = "name = \"tiny\"\n";
  run.scenario_hash = "5ce7a10";
  run.calibration_hash = "ca11b";
  run.seed = 7;
  run.granularity = Granularity::stage;
  run.gpus = 16;
  run.tp = 4;
  run.pp = 2;
  run.vpp = 1;
  run.dp = 2;
  run.zero_stage = 1;
  run.micro_batch_size = 1;
  run.global_batch_size = 64;
  run.micro_batches = 32;
  run.parameters = 8'000'000'000;
  run.iteration = Seconds{10};
  run.simulated_steps = 2;
  run.event_digest = "e4e27d16e57";
  run.samples = 1.2e6;
  run.samples_per_step = 64;
  run.gpu_days = 34.722;
  run.samples_per_s = 6.4;
  run.tokens_per_s_per_gpu = 819.2;
  run.model_flops = Flops{2e16};
  run.hardware_flops = Flops{2.5e16};
  run.mfu = 0.4;
  run.hfu = 0.5;
  run.source_shares = {0, 0.75, 0, 0.25};
  run.bubble_shares[kWarmup] = 0.15;
  run.bubble_shares[kCooldown] = 0.1;
  run.peak_memory = Bytes{61 * kGib};
  run.gpu_memory = Bytes{80 * kGib};
  run.facts = {{"bound_s", "9.5 s", 9.5}};
  for (int s = 0; s < 2; ++s) {
    StageRow stage;
    stage.stage = s;
    stage.layers = s == 0 ? "ViT-1B.embedding, 24 x ViT-1B.block, ViT-1B.projector, "
                            "GPT-7B.embedding, 8 x GPT-7B.block"
                          : "24 x GPT-7B.block, GPT-7B.head";
    stage.parameters = 1'000'000'000 + s;
    stage.forward = Seconds{0.08};
    stage.backward = Seconds{0.16};
    stage.busy = Seconds{s == 0 ? 8.0 : 7.0};
    stage.bubbles[kWarmup] = Seconds{s == 0 ? 1.0 : 2.0};
    stage.bubbles[kCooldown] = Seconds{1.0};
    stage.held[Holding::weights] = Bytes{2 * kGib};
    stage.held[Holding::gradients] = Bytes{4 * kGib};
    stage.held[Holding::optimizer] = Bytes{6 * kGib};
    stage.peak_activations = Bytes{45 * kGib};
    stage.saved_activations = Bytes{44 * kGib};
    stage.held[Holding::reserve] = Bytes{4 * kGib};
    stage.peak_memory = Bytes{(61 - 10 * s) * kGib};
    run.stages.push_back(stage);
  }
  run.steps.push_back({0, 0, Seconds{9.5}, 32, 32, 65536, 96, 0.25});
  run.steps.push_back({0, 1, Seconds{10.5}, 32, 32, 65000, 90, 0.26});
  SpanRow span{.stage = 1, .name = "chunk", .micro_batch = 3, .chunk = 0};
  span.start = Time{5}, span.end = Time{80};
  run.spans.push_back(span);
  span.stream = StreamKind::pp_send_next, span.kind = SpanKind::pp_send;
  span.name = "activations";
  span.start = Time{80}, span.end = Time{90};
  span.bytes = Bytes{4096};
  run.spans.push_back(span);
  run.spans.push_back({.stage = 1,
                       .kind = SpanKind::bubble,
                       .bubble = BubbleKind::pp_cooldown,
                       .name = "",
                       .start = Time{90},
                       .end = Time{100}});
  run.memory.push_back({0, 0, 1, Time{80}, Bytes{12 * kGib}});
  return run;
}

}  // namespace mllmsim
