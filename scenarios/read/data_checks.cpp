// What is trained, and on which samples.
#include <fmt/format.h>

#include "scenarios/read/checker.hpp"

namespace mllmsim::scenarios {

void Checker::training() const {
  const Model& model = job_.model;
  const auto learns = [](const auto& module) {
    return module.trained || module.blocks.adapters.lora_rank > 0;
  };
  bool any = learns(model.llm);
  for (const Encoder& e : model.encoders)
    any |= learns(e) || (e.projector_trained && !e.projector_sizes.empty());
  if (any) return;
  std::string keys = "model.llm.trained";
  for (std::size_t i = 0; i < model.encoders.size(); ++i)
    keys += fmt::format(", model.encoders.{0}.trained and model.encoders.{0}.projector_trained", i);
  add("model.llm.trained", fmt::format("nothing is trained: set one of {} to true", keys));
}

void Checker::cross_attention() const {
  if (!crosses(job_.model)) return;
  if (job_.model.encoders.empty())
    add("model.llm.cross_attention_layers", "there is no encoder whose tokens they could see");
  for (std::size_t i = 0; i < job_.model.encoders.size(); ++i)
    if (job_.model.encoders[i].deepstack_features > 0)
      add(fmt::format("model.encoders.{}.deepstack_features", i),
          "not with an llm that sees images by cross-attention");
}

// An encoder for pictures of any size has no tile unless one is given.
void Checker::tile_sizes() const {
  for (std::size_t i = 0; i < job_.model.encoders.size(); ++i)
    if (job_.model.encoders[i].tokens_per_tile == 0)
      add(fmt::format("model.encoders.{}", i),
          "takes pictures of any size: give data with their sizes (data.set with width and "
          "height), or the size of a tile, image_size");
}

// Lengths that were counted with another encoder's tokens for a tile say nothing about this one.
// A sample of one tile may be text alone.
void Checker::tokens_per_tile(const data::DataSet& set) const {
  if (job_.model.encoders.size() != 1 || crosses(job_.model)) return;
  const Encoder& e = job_.model.encoders.front();
  const std::int64_t ours = e.output_tokens_per_tile;
  if (set.tokens_per_tile > 0 && set.tokens_per_tile != ours)
    return add("data.set", fmt::format("counts {} LLM tokens for a tile, but {} gives {}",
                                       set.tokens_per_tile, e.name, ours));
  for (std::size_t i = 0; i < set.samples.size(); ++i) {
    const data::Sample& s = set.samples[i];
    if (s.tiles > 1 && s.tokens < s.tiles * ours)
      return add("data.set",
                 fmt::format("sample {} has {} tiles but {} tokens; with {} LLM tokens for each "
                             "tile of {} it has at least {}",
                             i + 1, s.tiles, s.tokens, ours, e.name, s.tiles * ours));
  }
}

void Checker::data() const {
  const Data& d = job_.data;
  if (d.set) {  // its samples carry their own
    if (!d.set->media.empty()) return;
    tile_sizes();
    return tokens_per_tile(*d.set);
  }
  const double tiles = d.tiles_per_sample;
  if (job_.model.encoders.empty()) {
    if (tiles > 0) add("data.tiles_per_sample", "the model has no encoder");
    return;
  }
  if (tiles == 0) {
    add("data.tiles_per_sample",
        "missing: the model has an encoder; give it, or samples of your own with data.set");
    return;
  }
  tile_sizes();
  if (crosses(job_.model)) return;  // images are not among the tokens
  for (const Encoder& e : job_.model.encoders) {
    const double image_tokens = tiles * static_cast<double>(e.output_tokens_per_tile);
    if (image_tokens > static_cast<double>(d.tokens_per_sample))
      add("data.tokens_per_sample",
          fmt::format("includes image tokens, of which {} tiles x {} from {} give {}; found {}",
                      tiles, e.output_tokens_per_tile, e.name, image_tokens, d.tokens_per_sample));
  }
}

}  // namespace mllmsim::scenarios
