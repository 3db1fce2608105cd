#include "results/analysis/remedies.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "strategies/registry/registry.hpp"

namespace mllmsim::analysis {
namespace {

constexpr double kAlike = 1.001;  // below this an imbalance is none

// Parameters sharded over all GPUs: one plan under two names, and sizes of its own.
bool is_sharded(const std::string& strategy) { return strategy == "zero3" || strategy == "fsdp"; }

class Remedies {
 public:
  Remedies(const Explanation& e, const scenarios::Scenario& scenario)
      : e_(e), job_(scenario.job), p_(job_.parallelism) {}

  std::vector<Remedy> all() {
    if (job_.given_times) {
      refuse("recompute off", "the times are given");
      refuse("better cut", "the times are given");
    } else {
      recompute();
      strategies();
      sizes();
    }
    data();
    return std::move(out_);
  }

 private:
  void add(std::string name, std::vector<std::string> overrides) {
    out_.push_back({std::move(name), fmt::format("{}", fmt::join(overrides, " "))});
    out_.back().overrides = std::move(overrides);
  }
  void refuse(std::string name, std::string why) {
    out_.push_back({std::move(name), ""});
    out_.back().note = std::move(why);
  }

  void recompute() {
    const RecomputePlan& r = job_.recompute;
    if (r.encoder == Recompute::none && r.llm == Recompute::none)
      refuse("recompute off", "nothing is recomputed");
    else
      add("recompute off", {"recompute=none"});
    if (e_.run.fits) return;
    if (r.encoder != Recompute::selective || r.llm != Recompute::selective)
      add("selective recompute", {"recompute=selective"});
    if (r.encoder != Recompute::full || r.llm != Recompute::full || !r.layers_per_stage.empty())
      add("full recompute", {"recompute=full"});
  }

  void strategies() {
    if (e_.run.stages.size() < 2)
      refuse("better cut", "there is one stage");
    else if (job_.strategy == "balanced")
      refuse("better cut", "the layers are cut by their times already");
    for (const Strategy& s : mllmsim::strategies()) {
      const bool cut = s.name == "balanced";
      if (s.name == job_.strategy || (cut && e_.run.stages.size() < 2)) continue;
      if (is_sharded(s.name) && (s.name == "fsdp" || is_sharded(job_.strategy))) continue;
      std::vector<std::string> overrides{"strategy.name=" + s.name};
      if (is_sharded(s.name))
        overrides.insert(overrides.end(), {"pp=1", "vpp=1", "parallelism.zero_stage=3"});
      else if (is_sharded(job_.strategy))
        overrides.emplace_back("parallelism.zero_stage=1");
      add(cut ? "better cut" : "strategy " + s.name, std::move(overrides));
    }
  }

  void sizes() {
    resize("tp", p_.tensor_model_parallel_size);
    if (!is_sharded(job_.strategy)) {
      resize("pp", p_.pipeline_model_parallel_size);
      if (p_.pipeline_model_parallel_size > 1) resize("vpp", p_.virtual_pipeline_stages);
    }
    resize("micro-batch", p_.micro_batch_size, "mbs");
    if (p_.tensor_model_parallel_size > 1 && !p_.sequence_parallel)
      add("sequence parallel", {"parallelism.sequence_parallel=true"});
    if (e_.run.fits) return;
    if (p_.zero_stage == 0)
      add("distributed optimizer", {"parallelism.zero_stage=1"});
    else if (p_.zero_stage == 1)
      refuse("distributed optimizer", "zero_stage is 1 already");
  }

  // Half and twice of a size.
  void resize(const std::string& name, std::int64_t size, std::string key = "") {
    if (key.empty()) key = name;
    for (const std::int64_t other : {size / 2, 2 * size})
      if (other > 0 && (other > size || size % 2 == 0))
        add(fmt::format("{} {}", name, other), {fmt::format("{}={}", key, other)});
  }

  void data() {
    const bool alike = e_.across_micro_batches < kAlike && e_.across_replicas < kAlike;
    if (alike) {
      refuse("balanced data", "all micro-batches are alike");
    } else {
      out_.push_back({"balanced data", "every micro-batch of mean size"});
      out_.back().same_micro_batches = true;
    }
    if (job_.data.set && data::is_packed(job_.data.batching))
      refuse("packed data", "the data are packed already");
    else if (job_.data.set)
      add("packed data", {"data.batching=\"isf\""});
    add("more micro-batches",
        {fmt::format("parallelism.global_batch_size={}", 2 * p_.global_batch_size)});
  }

  const Explanation& e_;
  const Job& job_;
  const Parallelism& p_;
  std::vector<Remedy> out_;
};

}  // namespace

std::vector<Remedy> remedies_for(const Explanation& explanation,
                                 const scenarios::Scenario& scenario) {
  return Remedies(explanation, scenario).all();
}

std::vector<Remedy> pairs_of(const std::vector<Remedy>& simulated) {
  const Remedy* least = nullptr;
  for (const Remedy& r : simulated)
    if (r.run && !r.overrides.empty() && (!least || r.run->peak_memory < least->run->peak_memory))
      least = &r;
  std::vector<Remedy> out;
  if (!least) return out;
  const auto key_of = [](const std::string& text) { return text.substr(0, text.find('=')); };
  for (const Remedy& r : simulated) {
    const bool at_odds =
        std::any_of(r.overrides.begin(), r.overrides.end(), [&](const std::string& one) {
          return std::any_of(
              least->overrides.begin(), least->overrides.end(),
              [&](const std::string& other) { return key_of(one) == key_of(other); });
        });
    if (&r == least || !r.run || r.overrides.empty() || at_odds) continue;
    Remedy both{least->name + " and " + r.name, least->change + " " + r.change};
    both.overrides = least->overrides;
    both.overrides.insert(both.overrides.end(), r.overrides.begin(), r.overrides.end());
    out.push_back(std::move(both));
  }
  return out;
}

}  // namespace mllmsim::analysis
