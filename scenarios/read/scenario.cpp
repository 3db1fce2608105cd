// From a resolved tree to a Job, part by part. A part with problems is not checked against others,
// so that one mistake is one message.
#include "scenarios/read/scenario.hpp"

#include <fmt/format.h>

#include <set>
#include <system_error>
#include <utility>

#include "scenarios/files/input_files.hpp"
#include "scenarios/files/portable.hpp"
#include "scenarios/files/shipped_files.hpp"
#include "scenarios/read/checks.hpp"
#include "scenarios/read/cluster_reader.hpp"
#include "scenarios/read/model_reader.hpp"
#include "scenarios/read/resolve.hpp"
#include "scenarios/read/run_reader.hpp"
#include "scenarios/read/software_reader.hpp"
#include "scenarios/tree/merge.hpp"
#include "scenarios/tree/toml_parse.hpp"
#include "sim/base/hash.hpp"
#include "sim/base/text.hpp"

namespace mllmsim::scenarios {
namespace {

namespace fs = std::filesystem;

// Results go to a directory of the run's name, so a name stays within one file name. Returns what
// is wrong, or nothing.
std::string_view wrong_name(const std::string& name) {
  constexpr std::size_t kLongest = 120;  // leaves room for what the command line changes
  if (name.empty()) return "it is empty";
  if (name.size() > kLongest) return "it is longer than 120 bytes";
  if (name.front() == '.') return "it begins with a dot";
  if (name.find_first_of("/\\") != std::string::npos) return "it has a slash";
  if (printable(name) != name) return "it has control characters, or is not UTF-8";
  return "";
}

// Reads the tables of a resolved run one by one, then what ties them together.
class RunReader {
 public:
  // `unresolved`: tables whose names led nowhere, which has been reported.
  RunReader(const Node& run, std::set<std::string> unresolved, Scenario& out, InputFiles& files,
            Problems& problems)
      : run_(run),
        unresolved_(std::move(unresolved)),
        out_(out),
        job_(out.job),
        files_(files),
        problems_(problems) {
    empty_.position = run.position;
  }

  void read() {
    TableReader reader(run_, "", problems_);
    const bool named = reader.read("name", job_.name);
    if (const std::string_view why = wrong_name(job_.name); !why.empty())
      reader.problem("name", fmt::format("{}\"{}\" is no name for a directory of results: {}",
                                         named ? "" : "missing: the file's ", job_.name, why));
    reader.read("description", out_.description);
    reader.read("granularity", job_.granularity);
    std::int64_t seed = 1;
    if (reader.read("seed", seed, {0, 9e18})) job_.seed = static_cast<std::uint64_t>(seed);
    read_assumptions(reader);
    if (const Node* times = reader.find("given_times"))
      job_.given_times = read_given_times(*times, problems_);
    if (!unresolved_.contains("software")) {
      const Node& software = table(reader, "software");
      job_.software = files_.read_once<Software>(
          software, problems_, [&] { return read_software(software, problems_); });
    } else {
      reader.find("software");
    }
    job_.recompute = read_recompute(reader, job_.software, problems_);
    const std::size_t before_model = problems_.count();
    if (const Node* model = resolved(reader, "model")) {
      job_.model = files_.read_once<Model>(*model, problems_,
                                           [&] { return read_model(*model, "model", problems_); });
      if (job_.model.name.empty()) job_.model.name = job_.name;  // written out in the run
    }
    model_right_ = problems_.count() == before_model && !unresolved_.contains("model");
    reader.read("precision", job_.software.precision.format);
    if (job_.software.precision.format == NumberFormat::fp32)
      job_.software.precision.parameter_bytes = job_.software.precision.activation_bytes = kFp32;
    const std::size_t before_data = problems_.count();
    job_.data = read_data(table(reader, "data"), !job_.given_times, out_.file.parent_path(),
                          job_.seed, job_.model, files_, problems_);
    data_right_ = problems_.count() == before_data;
    const std::size_t before_strategy = problems_.count();
    read_strategy(reader, job_, problems_);
    strategy_right_ = problems_.count() == before_strategy;
    read_model_and_cluster(reader);
    read_calibration(reader);
  }

 private:
  // An absent table is an empty one: it may have all defaults, or miss a key.
  const Node& table(TableReader& reader, const char* key) {
    const Node* found = reader.find(key);
    return found ? *found : empty_;
  }

  void read_assumptions(TableReader& reader) {
    const Node* list = reader.find("assumptions");
    if (!list) return;
    const auto wrong = [&](const Node& node) {
      problems_.add(node.position, "assumptions",
                    fmt::format("expected a list of strings, found {}", describe(node)));
    };
    if (!list->is<Node::Array>()) return wrong(*list);
    for (const Node& node : list->as<Node::Array>()) {
      if (!node.is<std::string>()) return wrong(node);
      out_.assumptions.push_back(node.as<std::string>());
    }
  }

  // Cluster and parallelism: what one leaves out follows from the others.
  void read_model_and_cluster(TableReader& reader) {
    const std::size_t before = problems_.count();
    const WrittenParallelism written = read_parallelism(table(reader, "parallelism"), problems_);
    job_.parallelism = written.sizes;
    const std::int64_t model_gpus = std::int64_t{written.sizes.tensor_model_parallel_size} *
                                    written.sizes.pipeline_model_parallel_size *
                                    written.sizes.context_parallel_size;
    if (const Node* cluster = resolved(reader, "cluster"))
      job_.cluster = read_cluster(*cluster, "cluster", problems_);
    else if (model_gpus * written.data_parallel_size.value_or(1) <= kMostGpus)
      job_.cluster =
          cluster_of(static_cast<int>(model_gpus * written.data_parallel_size.value_or(1)));
    if (problems_.count() != before || !model_right_ || !unresolved_.empty()) return;
    derive_data_parallel(written, model_gpus);
    derive_virtual_stages(written);
    if (problems_.count() != before) return;
    check_parallelism(job_, run_, problems_);
    if (strategy_right_ && problems_.count() == before) check_strategy(job_, run_, problems_);
    if (data_right_) check_data(job_, run_, problems_);
  }

  // Null if it is not there or not resolved. Only runs with given times may leave it out.
  const Node* resolved(TableReader& reader, const char* key) {
    const Node* node = reader.find(key);
    if (!node && !job_.given_times)
      reader.problem(key, "missing: name one (`mllmsim list` shows them) or write it out");
    return unresolved_.contains(key) ? nullptr : node;
  }

  void derive_data_parallel(const WrittenParallelism& written, std::int64_t model_gpus) {
    const int gpus = job_.cluster.gpus();
    if (gpus % model_gpus != 0)
      return add("parallelism", fmt::format("the cluster's {} GPUs do not divide by "
                                            "tensor_model_parallel_size {} x "
                                            "pipeline_model_parallel_size {}{} = {}",
                                            gpus, written.sizes.tensor_model_parallel_size,
                                            written.sizes.pipeline_model_parallel_size,
                                            written.sizes.context_parallel_size == 1
                                                ? ""
                                                : fmt::format(" x context_parallel_size {}",
                                                              written.sizes.context_parallel_size),
                                            model_gpus));
    job_.parallelism.data_parallel_size = static_cast<int>(gpus / model_gpus);
    if (written.data_parallel_size.value_or(job_.parallelism.data_parallel_size) !=
        job_.parallelism.data_parallel_size)
      add("parallelism.data_parallel_size",
          fmt::format("expected {} GPUs / (tp x {}pp) = {}, found {}", gpus,
                      written.sizes.context_parallel_size == 1 ? "" : "cp x ",
                      job_.parallelism.data_parallel_size, *written.data_parallel_size));
    if (written.gradient_accumulation_steps)
      job_.parallelism.global_batch_size = *written.gradient_accumulation_steps *
                                           job_.parallelism.micro_batch_size *
                                           job_.parallelism.data_parallel_size;
    if (job_.given_times && job_.data.samples == 0)  // one step, unless the run says more
      job_.data.samples = static_cast<double>(job_.parallelism.global_batch_size);
  }

  void derive_virtual_stages(const WrittenParallelism& written) {
    if (!written.layers_per_virtual_stage) return;
    const std::string key = "parallelism.num_layers_per_virtual_pipeline_stage";
    const std::int64_t layers = block_count(job_.model);
    if (layers == 0) return add(key, "needs a model; give virtual_pipeline_stages instead");
    const std::int64_t step =
        *written.layers_per_virtual_stage * job_.parallelism.pipeline_model_parallel_size;
    if (layers % step != 0)
      return add(key, fmt::format("the model's {} layers do not divide by {} x "
                                  "pipeline_model_parallel_size {}",
                                  layers, *written.layers_per_virtual_stage,
                                  job_.parallelism.pipeline_model_parallel_size));
    job_.parallelism.virtual_pipeline_stages = static_cast<int>(layers / step);
  }

  void read_calibration(TableReader& reader) {
    reader.find("calibration");
    if (job_.given_times || unresolved_.contains("cluster")) return;
    const std::string key = run_.find("calibration") ? "calibration" : "cluster.calibration";
    const Node& written = nearest(run_, key);
    if (written.is<Node::Table>()) {
      if (run_.find("cluster")) add(key, "missing: neither run nor cluster name one");
      return;
    }
    if (!written.is<std::string>())
      return add(key, fmt::format("expected a name or a path, found {}", describe(written)));
    const auto& name = written.as<std::string>();
    const fs::path file = locate(name, ShippedKind::calibration, directory_of(written.position));
    std::error_code error;
    if (fs::is_regular_file(file, error))
      out_.calibration = file;
    else
      add(key, not_found(name, ShippedKind::calibration, file));
  }

  void add(const std::string& key, std::string message) {
    problems_.add(nearest(run_, key).position, key, std::move(message));
  }

  static constexpr std::int64_t kMostGpus = 1'000'000;

  const Node& run_;
  Node empty_;
  std::set<std::string> unresolved_;
  Scenario& out_;
  Job& job_;
  InputFiles& files_;
  Problems& problems_;
  bool model_right_ = true, data_right_ = true, strategy_right_ = true;
};

// Names and words for people make no other model.
std::string work_of(const Node& run, const Job& job, const InputFiles& files) {
  const Node* model = run.find("model");
  // Given times without samples stand for one step, whatever its size.
  const bool counted = !job.given_times || nearest(run, "data.samples").is<std::int64_t>();
  return hash_text(fmt::format("{}\n{} {} {} {}", to_nameless_toml(model ? *model : Node{}),
                               counted ? job.data.samples : 0, job.data.tokens_per_sample,
                               job.data.tiles_per_sample, files.data_hash(job.data.set)));
}

Scenario resolved_scenario(const fs::path& file, std::string name, Node run,
                           const std::vector<std::string>& overrides, InputFiles& files) {
  Scenario out;
  out.file = file;
  out.job.name = std::move(name);
  Problems problems;
  run.as<Node::Table>().erase("sweep");  // says which runs to make, not what one is
  apply_overrides(run, overrides, problems);
  Resolver resolver(problems, files);
  std::set<std::string> unresolved;
  const auto resolve = [&](const char* key, auto member) {
    Node* written = run.find(key);
    if (!written) return;
    if (std::optional<Node> full = (resolver.*member)(*written, key))
      *written = std::move(*full);
    else
      unresolved.insert(key);
  };
  resolve("model", &Resolver::model);
  resolve("cluster", &Resolver::cluster);
  resolve("software", &Resolver::software);
  RunReader(run, unresolved, out, files, problems).read();
  problems.throw_if_any();
  out.text = portable_text(run);
  out.hash = hash_text(out.text);
  out.work = work_of(run, out.job, files);
  out.tree = std::make_shared<const Node>(std::move(run));
  return out;
}

}  // namespace

UserError Scenario::placed(const UserError& error) const {
  std::vector<Problem> problems = error.problems();
  for (Problem& p : problems)
    if (p.where.empty())
      p.where = p.key.empty() || !tree ? file.string() : nearest(*tree, p.key).position.text();
  return UserError(std::move(problems));
}

fs::path run_file(const std::string& name) { return existing(name, ShippedKind::run); }

Scenario read_scenario(const fs::path& file, const std::vector<std::string>& overrides,
                       InputFiles* files) {
  InputFiles own;
  InputFiles& read = files ? *files : own;
  const fs::path found = run_file(file.string());
  return resolved_scenario(found, found.stem().string(), read.toml(found), overrides, read);
}

Scenario read_scenario_text(const std::string& text, const std::string& name,
                            const std::vector<std::string>& overrides, InputFiles* files) {
  InputFiles own;
  return resolved_scenario(name, name, parse_toml(text, name), overrides, files ? *files : own);
}

Scenario read_scenario_tree(Node run, const fs::path& file, InputFiles* files) {
  InputFiles own;
  return resolved_scenario(file, file.stem().string(), std::move(run), {}, files ? *files : own);
}

Model read_model_file(const std::string& name) {
  Problems problems;
  Node reference;
  reference.value = existing(name, ShippedKind::model).string();
  InputFiles files;
  const std::optional<Node> full = Resolver(problems, files).model(reference, "model");
  problems.throw_if_any();
  Model model = read_model(*full, "model", problems);
  problems.throw_if_any();
  return model;
}

}  // namespace mllmsim::scenarios
