#include "cost_models/fit/import_kineto.hpp"

#include <algorithm>
#include <charconv>
#include <map>
#include <optional>
#include <set>
#include <string_view>

#include "cost_models/fit/fit_tools.hpp"
#include "sim/base/errors.hpp"
#include "sim/base/files.hpp"
#include "sim/base/json_reader.hpp"
#include "sim/base/quantile.hpp"

namespace mllmsim::fit {
namespace {

namespace json = boost::json;

constexpr double kLongestGapUs = 20;  // longer ones are the CPU falling behind

struct Kernel {
  std::int64_t stream = 0;
  double start_us = 0, duration_us = 0;
};

// A trace is full of optional things: these give nothing rather than fail.
const json::value* find(const json::value& object, std::string_view key) {
  const json::object* fields = object.if_object();
  return fields ? fields->if_contains(key) : nullptr;
}

std::optional<double> number(const json::value& object, std::string_view key) {
  const json::value* value = find(object, key);
  if (!value || !value->is_number()) return std::nullopt;
  return value->to_number<double>();
}

std::optional<std::int64_t> integer(const json::value& object, std::string_view key) {
  const std::optional<double> value = number(object, key);
  if (!value || *value < -9e15 || *value > 9e15) return std::nullopt;
  return static_cast<std::int64_t>(*value);
}

std::string_view text(const json::value& object, std::string_view key) {
  const json::value* value = find(object, key);
  return value && value->is_string() ? std::string_view(value->get_string()) : std::string_view();
}

std::vector<std::int64_t> sizes(const json::value& dims, std::size_t index) {
  std::vector<std::int64_t> out;
  const json::array* all = dims.if_array();
  const json::array* one = all && index < all->size() ? (*all)[index].if_array() : nullptr;
  if (!one) return out;
  for (const json::value& v : *one) {
    if (!v.is_int64() || v.get_int64() <= 0) return {};
    out.push_back(v.get_int64());
  }
  return out;
}

bool is_16_bit(std::string_view type) {
  return type.empty() || type.find("BFloat16") != std::string_view::npos ||
         type.find("Half") != std::string_view::npos;
}

// The product an operator asks for, if it is one and its shapes were recorded.
std::optional<costs::Gemm> product(std::string_view name, const json::value& args) {
  const std::size_t first = name == "aten::addmm" ? 1 : 0;
  if (name != "aten::mm" && name != "aten::addmm" && name != "aten::bmm") return std::nullopt;
  const json::value* dims = find(args, "Input Dims");
  if (!dims) return std::nullopt;
  const json::value* types = find(args, "Input type");
  const json::array* list = types ? types->if_array() : nullptr;
  if (list && first < list->size() && (*list)[first].is_string() &&
      !is_16_bit((*list)[first].get_string()))
    return std::nullopt;
  std::vector<std::int64_t> a = sizes(*dims, first), b = sizes(*dims, first + 1);
  if (name == "aten::bmm") {
    if (a.size() != 3 || b.size() != 3 || a[0] != 1) return std::nullopt;
    a.erase(a.begin()), b.erase(b.begin());
  }
  if (a.size() != 2 || b.size() != 2 || a[1] != b[0]) return std::nullopt;
  return costs::Gemm{a[0], b[1], a[1]};
}

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

class Trace {
 public:
  Trace(const json::array& events, int gpus_per_node) : gpus_per_node_(gpus_per_node) {
    for (const json::value& event : events) operators(event);
    for (const json::value& event : events) kernels(event);
  }

  RawData raw() {
    RawData out;
    std::map<costs::Gemm, std::vector<double>> by_shape;
    for (const auto& [id, us] : product_us_) by_shape[products_.at(id)].push_back(us);
    for (const auto& [shape, us] : by_shape) {
      GemmMeasurement g;
      g.kernel = shape;
      g.time = {median(us) * 1e-6};
      out.gemm.push_back(g);
    }
    for (const auto& [shape, us] : collective_us_)
      out.collectives.push_back({shape, Seconds{us * 1e-6}});
    if (const std::vector<double> gaps = kernel_gaps(); !gaps.empty())
      out.launch.push_back({median(gaps) * 1e-6});
    return out;
  }

 private:
  void operators(const json::value& event) {
    const json::value* args = find(event, "args");
    if (!args) return;
    const std::optional<std::int64_t> id = integer(*args, "External id");
    if (!id) return;
    const std::string_view category = text(event, "cat");
    if (category == "cpu_op") {
      if (const std::optional<costs::Gemm> g = product(text(event, "name"), *args))
        products_[*id] = *g;
    } else if (category == "cuda_runtime" || category == "cuda_driver") {
      if (const auto correlation = integer(*args, "correlation")) launched_by_[*correlation] = *id;
    }
  }

  void kernels(const json::value& event) {
    const json::value* args = find(event, "args");
    if (!args || text(event, "cat") != "kernel") return;
    const std::optional<double> start = number(event, "ts"), us = number(event, "dur");
    if (!start || !us || !(*us > 0)) return;
    kernels_.push_back({integer(*args, "stream").value_or(0), *start, *us});
    if (text(event, "name").substr(0, 4) == "nccl") {
      const std::optional<costs::Collective> c = collective(*args, gpus_per_node_);
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
    if (id && products_.contains(*id)) product_us_[*id] += *us;
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

  int gpus_per_node_;
  std::map<std::int64_t, costs::Gemm> products_;      // by External id
  std::map<std::int64_t, std::int64_t> launched_by_;  // correlation -> External id
  std::map<std::int64_t, double> product_us_;
  std::map<costs::Collective, double> collective_us_;
  std::vector<Kernel> kernels_;
};

}  // namespace

RawData parse_kineto(const std::string& trace, const std::string& file, int gpus_per_node) {
  const json::value document = parse_json(trace, file);
  const json::value* events = document.is_array() ? &document : find(document, "traceEvents");
  if (!events || !events->is_array())
    throw UserError(file, "traceEvents", "expected a list of events");
  RawData raw = Trace(events->get_array(), gpus_per_node).raw();
  if (raw.size() == 0)
    throw UserError(file, "traceEvents",
                    "no kernels with shapes; profile with record_shapes=True on a GPU");
  if (const json::value* devices = find(document, "deviceProperties");
      devices && devices->is_array() && !devices->get_array().empty())
    raw.header.gpu = text(devices->get_array()[0], "name");
  return raw;
}

RawData import_kineto(const std::filesystem::path& file, int gpus_per_node) {
  RawData raw = parse_kineto(read_file(file, kLargeFile), file.string(), gpus_per_node);
  raw.set_source(file.filename().string());
  return raw;
}

}  // namespace mllmsim::fit
