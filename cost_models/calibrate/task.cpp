#include "cost_models/calibrate/task.hpp"

#include <iterator>

#include "cost_models/kernels/names.hpp"
#include "sim/base/errors.hpp"
#include "sim/base/json_reader.hpp"
#include "sim/base/json_writer.hpp"
#include "sim/base/text.hpp"

namespace mllmsim::calibrate {
namespace json = boost::json;
namespace {

double real(std::int64_t n) { return static_cast<double>(n); }

std::int64_t count_or(JsonObject& line, std::string_view key, std::int64_t otherwise) {
  return line.has(key) ? line.count(key) : otherwise;
}
bool flag_or(JsonObject& line, std::string_view key, bool otherwise) {
  return line.has(key) ? line.flag(key) : otherwise;
}
// The first of them if nothing is said.
template <class Enum>
Enum choice_or_first(JsonObject& line, std::string_view key) {
  return line.has(key) ? line.choice<Enum>(key) : Enum{};
}

costs::Gemm read_gemm(JsonObject& in) {
  return {in.count("m"),
          in.count("n"),
          in.count("k"),
          choice_or_first<costs::GemmPass>(in, "pass"),
          count_or(in, "experts", 1),
          choice_or_first<NumberFormat>(in, "format"),
          in.has("experts")};
}

costs::Collective read_collective(JsonObject& in) {
  costs::GroupShape shape{static_cast<int>(count_or(in, "ranks", 2)),
                          static_cast<int>(count_or(in, "nodes", 1)), 1};
  if (shape.ranks % shape.nodes != 0) in.fail("ranks", "expected a multiple of nodes");
  return {in.choice<costs::CollectiveOp>("op"), Bytes{in.count("bytes")}, shape};
}

void add_gemm(json::object& out, const costs::Gemm& g) {
  out["m"] = g.m;
  out["n"] = g.n;
  out["k"] = g.k;
}

void add_collective(json::object& out, const costs::Collective& c) {
  out["op"] = name_of(c.op);
  out["ranks"] = c.group.ranks;
  out["nodes"] = c.group.nodes;
  out["bytes"] = c.bytes.value;
}

struct Writer {
  json::object& out;
  void operator()(const GemmTask& t) const {
    add_gemm(out, t.gemm);
    out["pass"] = name_of(t.gemm.pass);
    out["mode"] = name_of(t.mode);
    if (t.gemm.format != NumberFormat::bf16) out["format"] = name_of(t.gemm.format);
    if (t.gemm.grouped) out["experts"] = t.gemm.batch;
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
    out["op"] = name_of(t.op);
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
    out["kind"] = name_of(t.kind);
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
  return real(g.batch) * (bytes_of(g.format) * (real(g.m) * real(g.k) + real(g.k) * real(g.n)) +
                          output * real(g.m) * real(g.n));
}

}  // namespace

std::int64_t MemoryTask::bytes() const {
  const std::int64_t n = rows * row_length;
  switch (op) {
    case costs::MemoryOp::elementwise:
      return activation ? 4 * n : 6 * n;
    case costs::MemoryOp::norm_backward:
    case costs::MemoryOp::activation_backward:
    case costs::MemoryOp::cross_entropy_backward:
      return 6 * n;
    case costs::MemoryOp::norm:
    case costs::MemoryOp::softmax:
    case costs::MemoryOp::activation:
    case costs::MemoryOp::embedding:
    case costs::MemoryOp::cross_entropy:   // logits in, their gradient out
    case costs::MemoryOp::quantise_mxfp8:  // a value in, two of a byte out
      return 4 * n;
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

std::string key(const Task& task) { return line_json(to_json(task)); }

Task task_from_json(const json::value& value, const std::string& where) {
  JsonObject in(value, where);
  const std::string part = in.has("part") ? in.text("part") : "gemm";
  if (part == "gemm") return GemmTask{read_gemm(in), choice_or_first<Mode>(in, "mode")};
  if (part == "attention") {
    AttentionTask t{in.count("length"),
                    in.count("batch"),
                    in.count("heads"),
                    count_or(in, "kv_heads", in.count("heads")),
                    in.count("head_dim"),
                    flag_or(in, "causal", false),
                    flag_or(in, "backward", false)};
    if (t.heads % t.kv_heads != 0) in.fail("kv_heads", "expected a divisor of heads");
    return t;
  }
  if (part == "memory_bound")
    return MemoryTask{in.choice<costs::MemoryOp>("op"), in.count("rows"), in.count("row_length"),
                      flag_or(in, "activation", false)};
  if (part == "collective") return CollectiveTask{read_collective(in)};
  if (part == "p2p") return P2pTask{in.count("bytes"), flag_or(in, "same_node", true)};
  if (part == "launch") return LaunchTask{};
  if (part == "copy") return CopyTask{in.choice<CopyKind>("kind"), in.count("bytes")};
  if (part == "overlap") return OverlapTask{read_collective(in), read_gemm(in)};
  in.fail("part", "expected " + one_of({std::begin(kParts), std::end(kParts)}));
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
