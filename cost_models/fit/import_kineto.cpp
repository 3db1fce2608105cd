#include "cost_models/fit/import_kineto.hpp"

#include <algorithm>
#include <charconv>
#include <map>
#include <optional>
#include <set>
#include <string_view>

#include "cost_models/fit/kineto_operators.hpp"
#include "sim/base/errors.hpp"
#include "sim/base/files.hpp"
#include "sim/base/json_reader.hpp"
#include "sim/base/loose_json.hpp"
#include "sim/base/quantile.hpp"

namespace mllmsim::fit {
namespace {

namespace json = boost::json;
using loose::find, loose::integer, loose::number, loose::text;

constexpr double kLongestGapUs = 20;        // longer ones are the CPU falling behind
constexpr double kLongestHostGapUs = 1000;  // longer ones are no part of an operator: waiting, data
constexpr double kLeastShare = 0.2;         // of a time, that the profiler's part leaves
constexpr std::string_view kBackward = "autograd::engine::evaluate_function";

struct Kernel {
  std::int64_t stream = 0;
  double start_us = 0, duration_us = 0;
};

std::int64_t bytes_of(std::string_view type) {
  if (type == "BFloat16" || type == "Half") return 2;
  if (type == "Float" || type == "Int") return 4;
  if (type == "Double" || type == "Long") return 8;
  return type == "Byte" || type == "Char" ? 1 : 0;
}

// "[0, 8, 16]" on nodes of `gpus`: how many nodes; 0 if it cannot be told.
int nodes_of(std::string_view ranks, std::int64_t size, int gpus) {
  std::set<int> nodes;
  std::int64_t count = 0;
  for (std::size_t at = 0; at < ranks.size(); ++at) {
    int rank = 0;
    const auto [end, error] = std::from_chars(&ranks[at], ranks.data() + ranks.size(), rank);
    if (error != std::errc{}) continue;
    nodes.insert(rank / gpus);
    ++count;
    at = static_cast<std::size_t>(end - ranks.data()) - 1;
  }
  if (count != size || size % static_cast<std::int64_t>(nodes.size()) != 0) return 0;
  return static_cast<int>(nodes.size());
}

std::optional<costs::Collective> collective(const json::value& args, int gpus_per_node) {
  const std::string_view name = text(args, "Collective name");
  costs::Collective c;
  const auto contains = [&](std::string_view part) {
    return name.find(part) != std::string_view::npos;
  };
  if (contains("allreduce")) {
    c.op = costs::CollectiveOp::all_reduce;
  } else if (contains("allgather")) {
    c.op = costs::CollectiveOp::all_gather;
  } else if (contains("reduce_scatter")) {
    c.op = costs::CollectiveOp::reduce_scatter;
  } else {
    return std::nullopt;
  }
  const std::int64_t in = integer(args, "In msg nelems").value_or(0);
  const std::int64_t out = integer(args, "Out msg nelems").value_or(0);
  const std::int64_t size = integer(args, "Group size").value_or(0);
  c.bytes = {std::max(in, out) * bytes_of(text(args, "dtype"))};
  if (c.bytes.value <= 0 || size < 2 || size > 1'000'000) return std::nullopt;
  const int nodes = nodes_of(text(args, "Process Group Ranks"), size, gpus_per_node);
  if (nodes == 0) return std::nullopt;
  c.group = {static_cast<int>(size), nodes, 1};
  return c;
}

// An operator of one thread, and what it asks for if that is known.
struct Operator {
  std::int64_t thread = 0, id = 0;
  double start_us = 0, end_us = 0;
  const json::value* event = nullptr;
  std::optional<Asked> asked{};
  std::size_t inside = kNone;  // the nearest known operator around it, itself included
  double inner_us = 0;         // of known operators inside
  int recorded = 0;            // itself and unknown operators inside, if it is known

  static constexpr std::size_t kNone = static_cast<std::size_t>(-1);
};

class Trace {
 public:
  Trace(const json::array& events, const KinetoOptions& options) : options_(options) {
    for (const json::value& event : events) read(event);
    nest();
    for (const json::value& event : events) kernel(event);
    for (const auto& [index, us] : launched_us_) add(operators_[index], us);
    if (kernels_.empty()) host_times();
  }

  RawData raw() {
    RawData out;
    for (const auto& [asked, us] : times_) {
      const Seconds time{median(us) * 1e-6};
      if (const auto* g = std::get_if<costs::Gemm>(&asked)) {
        GemmMeasurement m;
        m.kernel = *g;
        m.time = time;
        out.gemm.push_back(m);
      } else if (const auto* a = std::get_if<costs::Attention>(&asked)) {
        AttentionMeasurement m;
        m.kernel = *a;
        m.time = time;
        out.attention.push_back(m);
      } else if (const auto* m = std::get_if<costs::MemoryBound>(&asked)) {
        out.memory_bound.push_back({*m, time});
      }
    }
    out.drop_odd_fp32();
    for (const auto& [shape, us] : collective_us_)
      out.collectives.push_back({shape, Seconds{us * 1e-6}});
    if (const std::vector<double> gaps = kernel_gaps(); !gaps.empty())
      out.launch.push_back({median(gaps) * 1e-6});
    return out;
  }

 private:
  void read(const json::value& event) {
    const json::value* args = find(event, "args");
    if (!args) return;
    const std::optional<std::int64_t> id = integer(*args, "External id");
    if (!id) return;
    const std::string_view category = text(event, "cat");
    if (category == "cpu_op") {
      const std::optional<double> start = number(event, "ts"), us = number(event, "dur");
      const double from = start.value_or(0);
      operators_.push_back({integer(event, "tid").value_or(0), *id, from,
                            from + std::max(0., us.value_or(0)), &event});
    } else if (category == "cuda_runtime" || category == "cuda_driver") {
      if (const auto correlation = integer(*args, "correlation")) launched_by_[*correlation] = *id;
    }
  }

  // Operators of a thread contain each other as their times do.
  void nest() {
    std::stable_sort(operators_.begin(), operators_.end(),
                     [](const Operator& a, const Operator& b) {
                       return std::tie(a.thread, a.start_us, b.end_us) <
                              std::tie(b.thread, b.start_us, a.end_us);
                     });
    std::vector<std::size_t> around;
    for (std::size_t i = 0; i < operators_.size(); ++i) {
      Operator& o = operators_[i];
      while (!around.empty() && (operators_[around.back()].thread != o.thread ||
                                 operators_[around.back()].end_us < o.end_us))
        around.pop_back();
      const bool backward = std::any_of(around.begin(), around.end(), [&](std::size_t a) {
        return text(*operators_[a].event, "name").substr(0, kBackward.size()) == kBackward;
      });
      o.asked = asked_of(text(*o.event, "name"), *find(*o.event, "args"), backward);
      const std::size_t outer = around.empty() ? Operator::kNone : operators_[around.back()].inside;
      if (clears_own_sums(o, outer)) o.asked.reset();
      o.inside = o.asked ? i : outer;
      if (o.asked && outer != Operator::kNone) operators_[outer].inner_us += o.end_us - o.start_us;
      if (o.inside != Operator::kNone) ++operators_[o.inside].recorded;
      by_id_.try_emplace(o.id, i);
      around.push_back(i);
    }
  }

  // What a kernel clears for itself is part of it; an embedding's gradient is a kernel of its own.
  bool clears_own_sums(const Operator& o, std::size_t outer) const {
    return o.asked && std::holds_alternative<Fill>(*o.asked) && outer != Operator::kNone &&
           std::holds_alternative<costs::Attention>(*operators_[outer].asked);
  }

  void add(const Operator& o, double us) { times_[*o.asked].push_back(us); }

  void host_times() {
    struct Since {  // the last known operator of a thread
      std::optional<double> end_us{};
      int recorded = 0;
    };
    std::map<std::int64_t, Since> threads;
    for (const Operator& o : operators_) {
      Since& since = threads[o.thread];
      if (!o.asked) {
        since.recorded += o.inside == Operator::kNone;
        continue;
      }
      const double before = since.end_us.value_or(o.start_us);
      const double gap = std::max(0., o.start_us - before);
      const double own = o.end_us - o.start_us - o.inner_us;
      const double all = own + (gap < kLongestHostGapUs ? gap : 0);
      const double profiler = options_.profiler_us * (o.recorded + since.recorded);
      if (own > 0) add(o, std::max(all - profiler, kLeastShare * all));
      since = {std::max(before, o.end_us), 0};
    }
  }

  void kernel(const json::value& event) {
    const json::value* args = find(event, "args");
    if (!args || text(event, "cat") != "kernel") return;
    const std::optional<double> start = number(event, "ts"), us = number(event, "dur");
    if (!start || !us || !(*us > 0)) return;
    kernels_.push_back({integer(*args, "stream").value_or(0), *start, *us});
    if (text(event, "name").substr(0, 4) == "nccl") {
      const std::optional<costs::Collective> c = collective(*args, options_.gpus_per_node);
      if (!c) return;
      const auto [at, added] = collective_us_.try_emplace(*c, *us);
      if (!added) at->second = std::min(at->second, *us);
      return;
    }
    std::optional<std::int64_t> id = integer(*args, "External id");
    if (!id)
      if (const auto correlation = integer(*args, "correlation"))
        if (const auto found = launched_by_.find(*correlation); found != launched_by_.end())
          id = found->second;
    if (!id) return;
    const auto found = by_id_.find(*id);
    if (found == by_id_.end() || operators_[found->second].inside == Operator::kNone) return;
    launched_us_[operators_[found->second].inside] += *us;
  }

  std::vector<double> kernel_gaps() {
    std::stable_sort(kernels_.begin(), kernels_.end(), [](const Kernel& a, const Kernel& b) {
      return std::tie(a.stream, a.start_us) < std::tie(b.stream, b.start_us);
    });
    std::vector<double> gaps;
    for (std::size_t i = 1; i < kernels_.size(); ++i) {
      const Kernel &before = kernels_[i - 1], &after = kernels_[i];
      const double gap = after.start_us - before.start_us - before.duration_us;
      if (before.stream == after.stream && gap > 0 && gap < kLongestGapUs) gaps.push_back(gap);
    }
    return gaps;
  }

  KinetoOptions options_;
  std::vector<Operator> operators_;  // by thread, then as they start
  std::map<std::int64_t, std::size_t> by_id_;
  std::map<std::int64_t, std::int64_t> launched_by_;  // correlation -> External id
  std::map<std::size_t, double> launched_us_;         // by operator
  std::map<Asked, std::vector<double>> times_;
  std::map<costs::Collective, double> collective_us_;
  std::vector<Kernel> kernels_;
};

}  // namespace

RawData parse_kineto(const std::string& trace, const std::string& file,
                     const KinetoOptions& options) {
  const json::value document = parse_json(trace, file);
  const json::value* events = document.is_array() ? &document : find(document, "traceEvents");
  if (!events || !events->is_array())
    throw UserError(file, "traceEvents", "expected a list of events");
  RawData raw = Trace(events->get_array(), options).raw();
  if (raw.size() == 0)
    throw UserError(file, "traceEvents",
                    "no kernels or operators with shapes; profile with record_shapes=True");
  if (const json::value* devices = find(document, "deviceProperties");
      devices && devices->is_array() && !devices->get_array().empty())
    raw.header.gpu = text(devices->get_array()[0], "name");
  return raw;
}

RawData import_kineto(const std::filesystem::path& file, const KinetoOptions& options) {
  RawData raw = parse_kineto(read_file(file, kLargeFile), file.string(), options);
  raw.set_source(file.filename().string());
  return raw;
}

}  // namespace mllmsim::fit
