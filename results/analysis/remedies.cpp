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
  Remedies(const scenarios::Scenario& scenario, const Explanation* e)
      : e_(e), job_(scenario.job), p_(job_.parallelism) {}

  // What frees memory, the strategy as it is.
  std::vector<Remedy> to_fit() {
    if (job_.given_times) return {};
    recompute();
    sizes();
    if (job_.strategy == "baseline" && p_.gradient_ranks() > 1) add("zero3", sharded("zero3"));
    std::erase_if(out_, [](const Remedy& r) { return !r.note.empty() || r.overrides.empty(); });
    return std::move(out_);
  }

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
    else if (e_)
      add("recompute off", {"recompute=none"});
    if (fits()) return;
    const bool full = r.encoder == Recompute::full && r.llm == Recompute::full;
    if (!full) selective();
    if (!full || !r.layers_per_stage.empty() || r.method == RecomputeMethod::block)
      add("full recompute", {"recompute=full"});
  }

  // As it is, and with the modules that Megatron's recipes add.
  void selective() {
    const RecomputePlan& r = job_.recompute;
    if (r.encoder != Recompute::selective || r.llm != Recompute::selective)
      add("selective recompute", {"recompute=selective"});
    std::string modules;
    bool experts = false;
    for (const Transformer* t : block_kinds(job_.model.llm.blocks, job_.model.llm.other_blocks))
      experts |= t->experts.num_experts > 0;
    modules += job_.model.llm.blocks.latent ? ",\"mla_up_proj\",\"layernorm\"" : "";
    modules += experts ? ",\"moe_act\"" : "";
    if (!modules.empty())
      add("recompute of cheap modules",
          {"recompute=selective", "recompute_modules=[" + modules.substr(1) + "]"});
    add("recompute of MLPs",
        {"recompute=selective", experts ? "recompute_modules=[\"moe\",\"mlp\",\"core_attn\"]"
                                        : "recompute_modules=[\"mlp\",\"core_attn\"]"});
  }

  static std::vector<std::string> sharded(const std::string& strategy) {
    return {"strategy.name=" + strategy, "pp=1", "vpp=1", "parallelism.zero_stage=3"};
  }

  void strategies() {
    if (e_->run.stages.size() < 2)
      refuse("better cut", "there is one stage");
    else if (job_.strategy == "balanced")
      refuse("better cut", "the layers are cut by their times already");
    for (const Strategy& s : mllmsim::strategies()) {
      const bool cut = s.name == "balanced";
      if (s.name == job_.strategy || (cut && e_->run.stages.size() < 2)) continue;
      if (is_sharded(s.name) && (s.name == "fsdp" || is_sharded(job_.strategy))) continue;
      std::vector<std::string> overrides =
          is_sharded(s.name) ? sharded(s.name)
                             : std::vector<std::string>{"strategy.name=" + s.name};
      if (!is_sharded(s.name) && is_sharded(job_.strategy))
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
    if (fits()) return;
    if (p_.zero_stage == 0)
      add("distributed optimizer", {"parallelism.zero_stage=1"});
    else if (p_.zero_stage == 1)
      refuse("distributed optimizer", "zero_stage is 1 already");
    if (job_.software.optimizer_offload_fraction >= 1)
      refuse("optimizer on the CPU", "it is there already");
    else
      add("optimizer on the CPU",
          p_.zero_stage >= 1 ? std::vector<std::string>{"software.optimizer_offload_fraction=1"}
                             : std::vector<std::string>{"parallelism.zero_stage=1",
                                                        "software.optimizer_offload_fraction=1"});
    offload_activations();
    if (!job_.model.llm.blocks.latent && job_.model.llm.blocks.sliding_window == 0)
      add(fmt::format("cp {}", 2 * p_.context_parallel_size),
          {fmt::format("cp={}", 2 * p_.context_parallel_size)});
  }

  // Of half of the LLM's blocks, where Megatron-Core can.
  void offload_activations() {
    const std::int64_t half = job_.model.llm.blocks.num_hidden_layers / 2;
    if (half == 0 || p_.pipeline_model_parallel_size > 1 ||
        job_.cluster.host_link_bandwidth.value <= 0)
      return;
    if (job_.recompute.llm != Recompute::none)
      refuse("activations on the CPU", "they are recomputed");
    else if (job_.software.cpu_offloading_num_layers > 0)
      refuse("activations on the CPU", "some are there already");
    else
      add("activations on the CPU", {fmt::format("software.cpu_offloading_num_layers={}", half)});
  }

  // Half and twice of a size.
  void resize(const std::string& name, std::int64_t size, std::string key = "") {
    if (key.empty()) key = name;
    for (const std::int64_t other : {size / 2, 2 * size})
      if (other > 0 && (other > size || size % 2 == 0))
        add(fmt::format("{} {}", name, other), {fmt::format("{}={}", key, other)});
  }

  void data() {
    const bool alike = e_->across_micro_batches < kAlike && e_->across_replicas < kAlike;
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

  bool fits() const { return e_ && e_->run.fits; }

  const Explanation* e_;  // none: only what frees memory is asked for
  const Job& job_;
  const Parallelism& p_;
  std::vector<Remedy> out_;
};

}  // namespace

std::vector<Remedy> remedies_for(const Explanation& explanation,
                                 const scenarios::Scenario& scenario) {
  return Remedies(scenario, &explanation).all();
}

std::vector<Remedy> remedies_to_fit(const scenarios::Scenario& scenario) {
  return Remedies(scenario, nullptr).to_fit();
}

std::vector<Remedy> pairs_of(const std::vector<Remedy>& simulated) {
  constexpr std::size_t kMost = 6;  // that are paired with each other
  std::vector<const Remedy*> least;
  for (const Remedy& r : simulated)
    if (r.run && !r.run->fits && !r.overrides.empty()) least.push_back(&r);
  std::stable_sort(least.begin(), least.end(), [](const Remedy* a, const Remedy* b) {
    return a->run->peak_memory < b->run->peak_memory;
  });
  const auto key_of = [](const std::string& text) { return text.substr(0, text.find('=')); };
  const auto at_odds = [&](const Remedy& a, const Remedy& b) {
    return std::any_of(a.overrides.begin(), a.overrides.end(), [&](const std::string& one) {
      return std::any_of(b.overrides.begin(), b.overrides.end(),
                         [&](const std::string& other) { return key_of(one) == key_of(other); });
    });
  };
  std::vector<Remedy> out;
  for (std::size_t i = 0; i < std::min(kMost, least.size()); ++i)
    for (std::size_t j = i + 1; j < (i == 0 ? least.size() : std::min(kMost, least.size())); ++j) {
      const Remedy &a = *least[i], &b = *least[j];
      if (at_odds(a, b)) continue;
      Remedy both{a.name + " and " + b.name, a.change + " " + b.change};
      both.overrides = a.overrides;
      both.overrides.insert(both.overrides.end(), b.overrides.begin(), b.overrides.end());
      out.push_back(std::move(both));
    }
  return out;
}

}  // namespace mllmsim::analysis
