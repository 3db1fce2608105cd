// mllmsim-calibrate: measures this node and leaves raw measurements for `mllmsim calibrate fit`.
//
// Exit: 0 done, 2 wrong arguments or a foreign raw file, 3 the file system or a device failed,
// 4 no device to measure.
#include <fmt/format.h>

#include <algorithm>
#include <boost/program_options.hpp>
#include <ctime>
#include <iostream>
#include <iterator>

#include "cost_models/calibrate/run.hpp"
#include "cost_models/calibrate/scenario_shapes.hpp"
#include "sim/base/errors.hpp"
#include "sim/base/text.hpp"

namespace {

using namespace mllmsim;
using namespace mllmsim::calibrate;
namespace po = boost::program_options;

struct Arguments {
  std::string backend, out, scenario, shapes, parts;
  std::vector<std::string> models;
  Rendezvous rendezvous;
  int gpus = 0;
  double minutes = 0, most_flops = 0, most_bytes = 0;
  bool quick = false, plan = false, help = false;
};

po::options_description describe(Arguments& a) {
  po::options_description all("mllmsim-calibrate [options]: measures this node");
  auto add = all.add_options();
  add("backend", po::value(&a.backend)->default_value("cuda"), "cuda, or host: this CPU, float32");
  add("out", po::value(&a.out)->default_value("raw.jsonl"), "raw measurements; continued if there");
  add("quick", po::bool_switch(&a.quick), "about 2 minutes instead of 20");
  add("plan", po::bool_switch(&a.plan), "print what would be measured, and stop");
  add("parts", po::value(&a.parts),
      "only these: gemm,attention,memory_bound,collective,p2p,launch,copy,overlap");
  add("model", po::value(&a.models),
      "also the layers of hidden,ffn,heads,kv_heads,tp; may be repeated");
  add("scenario", po::value(&a.scenario),
      "also the kernels of this scenario (file or shipped run)");
  add("shapes", po::value(&a.shapes), "also these tasks (JSON lines; mllmsim calibrate gaps)");
  add("minutes", po::value(&a.minutes), "time to aim at; decides the time for each measurement");
  add("gpus", po::value(&a.gpus), "use only so many GPUs (host: threads)");
  add("max-flops", po::value(&a.most_flops), "leave out larger tasks");
  add("max-bytes", po::value(&a.most_bytes), "leave out larger tasks");
  add("nodes", po::value(&a.rendezvous.nodes)->default_value(1), "nodes measured together");
  add("node-rank", po::value(&a.rendezvous.node_rank)->default_value(0), "which of them this is");
  add("rendezvous", po::value(&a.rendezvous.file), "file that all nodes see; new for each run");
  add("help", po::bool_switch(&a.help), "this text");
  return all;
}

[[noreturn]] void reject(const std::string& option, const std::string& message) {
  throw UserError("command line", option, message);
}

void validate(const Arguments& a, const po::variables_map& given) {
  if (a.backend != "cuda" && a.backend != "host") reject("--backend", "expected cuda or host");
  const Rendezvous& r = a.rendezvous;
  if (r.nodes < 1) reject("--nodes", "expected at least 1");
  if (r.node_rank < 0 || r.node_rank >= r.nodes) reject("--node-rank", "expected 0 to nodes - 1");
  if (r.nodes > 1 && r.file.empty() && !a.plan) reject("--rendezvous", "several nodes need it");
  if (r.nodes > 1 && a.backend == "host") reject("--nodes", "the host backend has one node");
  for (const char* positive : {"minutes", "max-flops", "max-bytes"})
    if (given.count(positive) && !(given[positive].as<double>() > 0))
      reject(std::string("--") + positive, "expected a positive number");
  if (given.count("gpus") && a.gpus < 1) reject("--gpus", "expected at least 1");
}

Arguments parse(int argc, char** argv) {
  Arguments a;
  const po::options_description options = describe(a);
  po::variables_map given;
  try {
    const int style =
        po::command_line_style::default_style & ~po::command_line_style::allow_guessing;
    po::store(po::command_line_parser(argc, argv)
                  .options(options)
                  .positional(po::positional_options_description{})
                  .style(style)
                  .run(),
              given);
    po::notify(given);
  } catch (const po::error& e) {
    reject("", std::string(e.what()) + " (--help lists the options)");
  }
  if (a.help)
    std::cout << options;
  else
    validate(a, given);
  return a;
}

std::set<std::string> parse_parts(const std::string& text) {
  std::set<std::string> parts;
  if (text.empty()) return parts;
  for (const std::string_view name : split(text, ',')) {
    if (std::find(std::begin(kParts), std::end(kParts), name) == std::end(kParts))
      reject("--parts", fmt::format("\"{}\" is none of {}", name, fmt::join(kParts, ", ")));
    parts.emplace(name);
  }
  return parts;
}

PlanOptions plan_options(const Arguments& a, int gpus) {
  PlanOptions o;
  o.quick = a.quick;
  o.parts = parse_parts(a.parts);
  for (const std::string& model : a.models) o.models.push_back(parse_model(model));
  if (!a.shapes.empty()) o.shapes = read_shapes(a.shapes);
  if (!a.scenario.empty()) {
    const std::vector<Task> more = scenario_shapes(a.scenario);
    o.shapes.insert(o.shapes.end(), more.begin(), more.end());
  }
  o.gpus = gpus;
  o.nodes = a.rendezvous.nodes;
  o.target_s = 60 * (a.minutes > 0 ? a.minutes : a.quick ? 2 : 20);
  if (a.backend == "host") {  // a CPU is a thousand times slower: keep repetitions below a second
    o.speed = {20e9, 4e9, 0.02};
    o.most_flops = 10e9;
    o.most_bytes = 256e6;
  }
  if (a.most_flops > 0) o.most_flops = a.most_flops;
  if (a.most_bytes > 0) o.most_bytes = a.most_bytes;
  return o;
}

std::string today() {
  const std::time_t now = std::time(nullptr);
  char text[32];
  std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", std::gmtime(&now));
  return text;
}

int measure_node(const Arguments& a) {
  plan_options(a, 1);  // complain about arguments before touching a device
  const std::unique_ptr<Backend> backend =
      a.backend == "host" ? make_host_backend(a.gpus) : make_cuda_backend(a.gpus, a.rendezvous);
  Plan plan = make_plan(plan_options(a, backend->devices()));
  constexpr const char* kUnit = "measurements";
  if (a.rendezvous.node_rank > 0) {
    Progress follower(stderr, /*terminal=*/false);
    follower.begin(plan.tasks.size(), kUnit, plan.estimate_s());
    run_plan(plan, *backend, nullptr, follower, steady_clock());
    return 0;
  }
  RawFile file(a.out, backend->header(), today());
  Plan rest = plan;
  rest.tasks = remaining(plan, file);
  fmt::print(stderr, "{}: {} of {} measurements to do, about {:.1f} minutes\n", a.out,
             rest.tasks.size(), plan.tasks.size(), rest.estimate_s() / 60);
  Progress progress(stderr);
  progress.begin(rest.tasks.size(), kUnit, rest.estimate_s());
  const int measured = run_plan(plan, *backend, &file, progress, steady_clock());
  progress.note(fmt::format("{}: {} measurements added, {} in all", a.out, measured, file.size()));
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    const Arguments a = parse(argc, argv);
    if (a.help) return 0;
    if (!a.plan) return measure_node(a);
    const int gpus = a.backend == "host" ? make_host_backend(a.gpus)->devices()
                     : a.gpus > 0        ? a.gpus
                                         : 8;
    std::cout << make_plan(plan_options(a, gpus)).text();
    return 0;
  } catch (const UserError& e) {
    fmt::print(stderr, "{}\n", e.what());
    return 2;
  } catch (const NoDevice& e) {
    fmt::print(stderr, "mllmsim-calibrate: {}\n", e.what());
    return 4;
  } catch (const std::exception& e) {
    fmt::print(stderr, "mllmsim-calibrate: {}\n", e.what());
    return 3;
  }
}
