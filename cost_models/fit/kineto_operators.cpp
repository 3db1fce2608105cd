#include "cost_models/fit/kineto_operators.hpp"

#include <algorithm>
#include <array>
#include <string>
#include <vector>

namespace mllmsim::fit {
namespace {

namespace json = boost::json;
using Sizes = std::vector<std::int64_t>;

constexpr double kMostValues = 1e15;

// The arguments of one call as the profiler wrote them. A trace is full of optional things: these
// give nothing rather than fail.
class Call {
 public:
  explicit Call(const json::value& args)
      : dims_(list(args, "Input Dims")),
        strides_(list(args, "Input Strides")),
        types_(list(args, "Input type")),
        values_(list(args, "Concrete Inputs")) {}

  bool has_shapes() const { return dims_ != nullptr; }
  Sizes sizes(std::size_t i) const { return numbers(at(dims_, i)); }
  Sizes strides(std::size_t i) const { return numbers(at(strides_, i)); }
  // Of a tensor, or of all of a list of tensors.
  double values(std::size_t i) const {
    const json::value* one = at(dims_, i);
    const json::array* items = one ? one->if_array() : nullptr;
    if (!items || items->empty()) return 0;
    if (!items->front().is_array()) return count(numbers(one));
    double sum = 0;
    for (const json::value& tensor : *items) sum += count(numbers(&tensor));
    return sum;
  }
  std::string_view type(std::size_t i) const {
    const json::value* one = at(types_, i);
    return one && one->is_string() ? std::string_view(one->get_string()) : std::string_view();
  }
  bool flag(std::size_t i) const {
    const json::value* one = at(values_, i);
    return one && one->is_string() && one->get_string() == "True";
  }
  std::int64_t bytes_per_value(std::size_t i) const {
    const std::string_view t = type(i);
    const auto is = [&](std::string_view part) { return t.find(part) != std::string_view::npos; };
    if (is("BFloat16") || is("Half")) return 2;
    if (is("ouble") || is("long")) return 8;
    return 4;
  }

 private:
  static const json::array* list(const json::value& args, std::string_view key) {
    const json::object* fields = args.if_object();
    const json::value* found = fields ? fields->if_contains(key) : nullptr;
    return found ? found->if_array() : nullptr;
  }
  static const json::value* at(const json::array* items, std::size_t i) {
    return items && i < items->size() ? &(*items)[i] : nullptr;
  }
  static Sizes numbers(const json::value* value) {
    Sizes out;
    const json::array* items = value ? value->if_array() : nullptr;
    if (!items) return out;
    for (const json::value& v : *items) {
      if (!v.is_int64() || v.get_int64() < 0) return {};
      out.push_back(v.get_int64());
    }
    return out;
  }
  static double count(const Sizes& sizes) {
    if (sizes.empty()) return 0;
    double n = 1;
    for (const std::int64_t s : sizes) n *= static_cast<double>(s);
    return n;
  }

  const json::array *dims_, *strides_, *types_, *values_;
};

std::optional<Asked> product(std::string_view name, const Call& call, bool in_backward) {
  const std::size_t first = name == "aten::addmm" ? 1 : 0;
  Sizes a = call.sizes(first), b = call.sizes(first + 1), layout = call.strides(first);
  if (name == "aten::bmm") {
    if (a.size() != 3 || b.size() != 3 || a[0] != 1) return std::nullopt;
    a.erase(a.begin()), b.erase(b.begin());
    if (layout.size() == 3) layout.erase(layout.begin());
  }
  if (a.size() != 2 || b.size() != 2 || a[1] != b[0]) return std::nullopt;
  costs::Gemm g{a[0], b[1], a[1]};
  if (std::min({g.m, g.n, g.k}) < 1) return std::nullopt;
  const std::string_view type = call.type(first);
  if (type.find("loat") != std::string_view::npos &&
      type.find("BFloat16") == std::string_view::npos)
    g.format = NumberFormat::fp32;
  else if (!type.empty() && call.bytes_per_value(first) != 2)
    return std::nullopt;
  if (!in_backward) return g;
  const bool transposed = layout.size() == 2 && layout[0] == 1 && layout[1] >= a[0] && a[1] > 1;
  g.pass = transposed ? costs::GemmPass::weight_gradient : costs::GemmPass::input_gradient;
  if (transposed) std::swap(g.m, g.n);  // outputs x inputs; layers have inputs x outputs
  return g;
}

// Queries, keys: [sequences, heads, length, head dim].
std::optional<Asked> attention(const Call& call, std::size_t query, std::size_t causal,
                               bool backward) {
  const Sizes q = call.sizes(query), k = call.sizes(query + 1);
  if (q.size() != 4 || k.size() != 4 || q[2] != k[2]) return std::nullopt;
  costs::Attention a;
  a.sequences = {{q[2], q[0]}};
  a.heads = q[1];
  a.kv_heads = k[1];
  a.head_dim = q[3];
  a.causal = call.flag(causal);
  a.backward = backward;
  if (std::min({q[0], q[1], q[2], q[3], k[1]}) < 1) return std::nullopt;
  return a;
}

// What scaled_dot_product_attention may choose: where its queries are (behind their gradient in a
// backward), and whether it is causal.
struct AttentionRule {
  std::string_view name;
  std::size_t query, causal;
};
constexpr std::array kAttentions{
    AttentionRule{"aten::_scaled_dot_product_flash_attention", 0, 4},
    AttentionRule{"aten::_scaled_dot_product_flash_attention_backward", 1, 11},
    AttentionRule{"aten::_scaled_dot_product_flash_attention_for_cpu", 0, 4},
    AttentionRule{"aten::_scaled_dot_product_flash_attention_for_cpu_backward", 1, 7},
    AttentionRule{"aten::_scaled_dot_product_cudnn_attention", 0, 6},
    AttentionRule{"aten::_scaled_dot_product_cudnn_attention_backward", 1, 14},
    AttentionRule{"aten::_scaled_dot_product_efficient_attention", 0, 6},
    AttentionRule{"aten::_scaled_dot_product_efficient_attention_backward", 1, 11},
};

// How the bytes of an operator follow from its tensors.
struct MemoryRule {
  std::string_view name;
  costs::MemoryOp op;
  std::size_t tensor;  // whose values count
  int numbers;         // read and written for each of them
  bool rows;           // of which it has as many as its last dimension is not
};
constexpr std::array kRules{
    MemoryRule{"aten::native_layer_norm", costs::MemoryOp::norm, 0, 2, true},
    MemoryRule{"aten::native_layer_norm_backward", costs::MemoryOp::norm_backward, 0, 3, true},
    MemoryRule{"aten::_fused_rms_norm", costs::MemoryOp::norm, 0, 2, true},
    MemoryRule{"aten::_fused_rms_norm_backward", costs::MemoryOp::norm_backward, 0, 3, true},
    MemoryRule{"aten::_softmax", costs::MemoryOp::softmax, 0, 2, true},
    MemoryRule{"aten::_softmax_backward_data", costs::MemoryOp::softmax, 0, 3, true},
    MemoryRule{"aten::_log_softmax", costs::MemoryOp::cross_entropy, 0, 2, true},
    MemoryRule{"aten::_log_softmax_backward_data", costs::MemoryOp::cross_entropy_backward, 0, 3,
               true},
    MemoryRule{"aten::gelu", costs::MemoryOp::activation, 0, 2, false},
    MemoryRule{"aten::silu", costs::MemoryOp::activation, 0, 2, false},
    MemoryRule{"aten::gelu_backward", costs::MemoryOp::activation_backward, 0, 3, false},
    MemoryRule{"aten::silu_backward", costs::MemoryOp::activation_backward, 0, 3, false},
    MemoryRule{"aten::embedding_dense_backward", costs::MemoryOp::embedding, 0, 3, false},
    MemoryRule{"aten::_fused_adamw_", costs::MemoryOp::optimizer, 0, 7, false},
    MemoryRule{"aten::_fused_adam_", costs::MemoryOp::optimizer, 0, 7, false},
    MemoryRule{"aten::add", costs::MemoryOp::elementwise, 0, 3, false},
    MemoryRule{"aten::add_", costs::MemoryOp::elementwise, 0, 3, false},
    MemoryRule{"aten::mul", costs::MemoryOp::elementwise, 0, 3, false},
    MemoryRule{"aten::mul_", costs::MemoryOp::elementwise, 0, 3, false},
    MemoryRule{"aten::copy_", costs::MemoryOp::elementwise, 0, 2, false},
    MemoryRule{"aten::cat", costs::MemoryOp::elementwise, 0, 2, false},
};

std::optional<Asked> memory_bound(std::string_view name, const Call& call) {
  if (name == "aten::embedding") {  // table, indices: a row of the table for each index
    const Sizes table = call.sizes(0);
    const double values = table.size() == 2 ? static_cast<double>(table[1]) * call.values(1) : 0;
    if (values < 1 || values > kMostValues) return std::nullopt;
    const auto bytes = static_cast<std::int64_t>(values) * 2 * call.bytes_per_value(0);
    return costs::MemoryBound{costs::MemoryOp::embedding, Bytes{bytes}, 0, 0};
  }
  const auto* rule = std::find_if(kRules.begin(), kRules.end(),
                                  [&](const MemoryRule& r) { return r.name == name; });
  if (rule == kRules.end()) return std::nullopt;
  const double values = call.values(rule->tensor);
  if (values < 1 || values > kMostValues) return std::nullopt;
  const auto count = static_cast<std::int64_t>(values);
  costs::MemoryBound m{rule->op, Bytes{count * rule->numbers * call.bytes_per_value(rule->tensor)},
                       0, 0};
  const Sizes sizes = call.sizes(rule->tensor);
  if (rule->rows && !sizes.empty()) {
    m.row_length = sizes.back();
    m.rows = count / std::max<std::int64_t>(1, m.row_length);
  }
  return m;
}

}  // namespace

std::optional<Asked> asked_of(std::string_view name, const json::value& args, bool in_backward) {
  const Call call(args);
  if (!call.has_shapes()) return std::nullopt;
  if (name == "aten::mm" || name == "aten::addmm" || name == "aten::bmm")
    return product(name, call, in_backward);
  const auto* kernel = std::find_if(kAttentions.begin(), kAttentions.end(),
                                    [&](const AttentionRule& r) { return r.name == name; });
  if (kernel != kAttentions.end())
    return attention(call, kernel->query, kernel->causal, kernel->query > 0);
  if (name == "aten::fill_" || name == "aten::zero_") return Fill{};
  return memory_bound(name, call);
}

}  // namespace mllmsim::fit
