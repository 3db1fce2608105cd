#include "cost_models/calibrate/task.hpp"

#include <fmt/format.h>

#include <array>
#include <boost/json/serialize.hpp>
#include <optional>

#include "sim/base/errors.hpp"

namespace mllmsim::calibrate {
namespace json = boost::json;
namespace {

// Names of enumerators, in the order of the enum.
constexpr std::array<std::string_view, 3> kPasses = {"forward", "input_gradient",
                                                     "weight_gradient"};
constexpr std::array<std::string_view, 2> kModes = {"burst", "sustained"};
constexpr std::array<std::string_view, 7> kMemoryOps = {
    "elementwise", "norm", "norm_backward", "softmax", "embedding", "cross_entropy", "optimizer"};
constexpr std::array<std::string_view, 3> kCollectives = {"all_gather", "reduce_scatter",
                                                          "all_reduce"};
constexpr std::array<std::string_view, 3> kCopies = {"h2d", "d2h", "device"};

template <class Enum, std::size_t N>
std::string_view name(const std::array<std::string_view, N>& names, Enum value) {
  return names.at(static_cast<std::size_t>(value));
}

double real(std::int64_t n) { return static_cast<double>(n); }

class Reader {
 public:
  Reader(const json::object& line, const std::string& where) : line_(line), where_(where) {}

  std::int64_t count(std::string_view field, std::optional<std::int64_t> otherwise = {}) const {
    const json::value* value = line_.if_contains(field);
    if (!value && otherwise) return *otherwise;
    if (!value || !value->is_int64() || value->get_int64() < 1)
      fail(field, "expected a positive whole number");
    return value->get_int64();
  }
  bool flag(std::string_view field, bool otherwise) const {
    const json::value* value = line_.if_contains(field);
    if (!value) return otherwise;
    if (!value->is_bool()) fail(field, "expected true or false");
    return value->get_bool();
  }
  // Takes any constant range of names; the first is used if the field is absent and `optional`.
  template <class Enum, std::size_t N>
  Enum choice(std::string_view field, const std::array<std::string_view, N>& names,
              bool optional = false) const {
    const json::value* value = line_.if_contains(field);
    if (!value && optional) return Enum{};
    if (value && value->is_string())
      for (std::size_t i = 0; i < N; ++i)
        if (value->get_string() == names[i]) return static_cast<Enum>(i);
    std::string expected;
    for (std::string_view n : names) expected += (expected.empty() ? "" : ", ") + std::string(n);
    fail(field, "expected one of " + expected);
  }
  [[noreturn]] void fail(std::string_view field, const std::string& message) const {
    throw UserError(where_, std::string(field), message);
  }

 private:
  const json::object& line_;
  const std::string& where_;
};

costs::Gemm read_gemm(const Reader& in) {
  return {in.count("m"), in.count("n"), in.count("k"),
          in.choice<costs::GemmPass>("pass", kPasses, true), 1};
}

costs::Collective read_collective(const Reader& in) {
  costs::GroupShape shape{static_cast<int>(in.count("ranks", 2)),
                          static_cast<int>(in.count("nodes", 1)), 1};
  if (shape.ranks % shape.nodes != 0) in.fail("ranks", "expected a multiple of nodes");
  return {in.choice<costs::CollectiveOp>("op", kCollectives), Bytes{in.count("bytes")}, shape};
}

void add_gemm(json::object& out, const costs::Gemm& g) {
  out["m"] = g.m;
  out["n"] = g.n;
  out["k"] = g.k;
}

void add_collective(json::object& out, const costs::Collective& c) {
  out["op"] = name(kCollectives, c.op);
  out["ranks"] = c.group.ranks;
  out["nodes"] = c.group.nodes;
  out["bytes"] = c.bytes.value;
}

struct Writer {
  json::object& out;
  void operator()(const GemmTask& t) const {
    add_gemm(out, t.gemm);
    out["pass"] = name(kPasses, t.gemm.pass);
    out["mode"] = name(kModes, t.mode);
  }
  void operator()(const AttentionTask& t) const {
    out["length"] = t.length;
    out["batch"] = t.batch;
    out["heads"] = t.heads;
    out["kv_heads"] = t.kv_heads;
    out["head_dim"] = t.head_dim;
    out["causal"] = t.causal;
    out["backward"] = t.backward;
  }
  void operator()(const MemoryTask& t) const {
    out["op"] = name(kMemoryOps, t.op);
    if (t.op == costs::MemoryOp::elementwise) out["activation"] = t.activation;
    out["bytes"] = t.bytes();
    out["rows"] = t.rows;
    out["row_length"] = t.row_length;
  }
  void operator()(const CollectiveTask& t) const { add_collective(out, t.collective); }
  void operator()(const P2pTask& t) const {
    out["same_node"] = t.same_node;
    out["bytes"] = t.bytes;
  }
  void operator()(const LaunchTask&) const {}
  void operator()(const CopyTask& t) const {
    out["kind"] = name(kCopies, t.kind);
    out["bytes"] = t.bytes;
  }
  void operator()(const OverlapTask& t) const {
    add_collective(out, t.collective);
    add_gemm(out, t.gemm);
  }
};

double gemm_bytes(const costs::Gemm& g) {
  const double output =
      g.pass == costs::GemmPass::weight_gradient ? 8 : 2;  // fp32, read and written
  return 2 * (real(g.m) * real(g.k) + real(g.k) * real(g.n)) + output * real(g.m) * real(g.n);
}

}  // namespace

std::int64_t MemoryTask::bytes() const {
  const std::int64_t n = rows * row_length;
  switch (op) {
    case costs::MemoryOp::elementwise:
      return activation ? 4 * n : 6 * n;
    case costs::MemoryOp::norm:
      return 4 * n;
    case costs::MemoryOp::norm_backward:
      return 6 * n;
    case costs::MemoryOp::softmax:
      return 4 * n;
    case costs::MemoryOp::embedding:
      return 4 * n;
    case costs::MemoryOp::cross_entropy:
      return 4 * n;  // logits in, their gradient out
    case costs::MemoryOp::optimizer:
      return 30 * n;
  }
  throw InternalError("unknown memory-bound kernel");
}

std::string_view part(const Task& task) { return kParts[task.index()]; }

json::object to_json(const Task& task) {
  json::object out;
  out["part"] = part(task);
  std::visit(Writer{out}, task);
  return out;
}

std::string key(const Task& task) { return json::serialize(to_json(task)); }

Task task_from_json(const json::object& line, const std::string& where) {
  const Reader in(line, where);
  const json::value* name = line.if_contains("part");
  const std::string part = !name ? "gemm" : name->is_string() ? name->get_string().c_str() : "";
  if (part == "gemm") return GemmTask{read_gemm(in), in.choice<Mode>("mode", kModes, true)};
  if (part == "attention") {
    AttentionTask t{in.count("length"),        in.count("batch"),
                    in.count("heads"),         in.count("kv_heads", in.count("heads")),
                    in.count("head_dim"),      in.flag("causal", false),
                    in.flag("backward", false)};
    if (t.heads % t.kv_heads != 0) in.fail("kv_heads", "expected a divisor of heads");
    return t;
  }
  if (part == "memory_bound")
    return MemoryTask{in.choice<costs::MemoryOp>("op", kMemoryOps), in.count("rows"),
                      in.count("row_length"), in.flag("activation", false)};
  if (part == "collective") return CollectiveTask{read_collective(in)};
  if (part == "p2p") return P2pTask{in.count("bytes"), in.flag("same_node", true)};
  if (part == "launch") return LaunchTask{};
  if (part == "copy") return CopyTask{in.choice<CopyKind>("kind", kCopies), in.count("bytes")};
  if (part == "overlap") return OverlapTask{read_collective(in), read_gemm(in)};
  throw UserError(where, "part", fmt::format("expected one of {}", fmt::join(kParts, ", ")));
}

costs::GroupShape group(const Task& task) {
  if (const auto* c = std::get_if<CollectiveTask>(&task)) return c->collective.group;
  if (const auto* o = std::get_if<OverlapTask>(&task)) return o->collective.group;
  if (const auto* p = std::get_if<P2pTask>(&task)) return {2, p->same_node ? 1 : 2, 1};
  return {};
}

Work work(const Task& task) {
  struct Visitor {
    Work operator()(const GemmTask& t) const { return {t.gemm.flops().value, gemm_bytes(t.gemm)}; }
    Work operator()(const AttentionTask& t) const {
      const costs::Attention a{
          {{t.length, t.batch}}, t.heads, t.kv_heads, t.head_dim, t.causal, t.backward};
      const double tokens = real(t.length * t.batch * t.head_dim);
      return {a.flops().value * (t.causal ? 0.5 : 1.0),
              (t.backward ? 8 : 4) * tokens * real(t.heads + t.kv_heads)};
    }
    Work operator()(const MemoryTask& t) const { return {0, real(t.bytes())}; }
    Work operator()(const CollectiveTask& t) const { return {0, real(t.collective.bytes.value)}; }
    Work operator()(const P2pTask& t) const { return {0, real(t.bytes)}; }
    Work operator()(const LaunchTask&) const { return {}; }
    Work operator()(const CopyTask& t) const { return {0, real(t.bytes)}; }
    Work operator()(const OverlapTask& t) const {
      return {t.gemm.flops().value, gemm_bytes(t.gemm) + real(t.collective.bytes.value)};
    }
  };
  return std::visit(Visitor{}, task);
}

}  // namespace mllmsim::calibrate
