#include "results/trace/kineto.hpp"

#include <fmt/format.h>

#include <cmath>
#include <optional>
#include <string_view>

#include "cost_models/kernels/kernel_costs.hpp"

namespace mllmsim::results {
namespace {

constexpr std::int64_t kElementBytes = 2;

struct Collective {
  const char* kernel;      // as NCCL calls it
  const char* name;        // as Kineto calls it
  int passes;              // of the buffer round the ring
  bool gathers, scatters;  // a rank puts in, or gets out, 1 / n of the buffer
};
constexpr Collective kAllReduce{"AllReduce_Sum_bf16_RING_LL", "allreduce", 2, false, false};
constexpr Collective kAllGather{"AllGather_RING_LL", "_allgather_base", 1, true, false};
constexpr Collective kReduceScatter{"ReduceScatter_Sum_bf16_RING_LL", "_reduce_scatter_base", 1,
                                    false, true};

const Collective* collective(const SpanRow& s) {
  const auto has = [&](std::string_view part) { return s.name.find(part) != std::string::npos; };
  if (s.kind == SpanKind::sync || has("all-reduce")) return &kAllReduce;
  if (has("all-gather")) return &kAllGather;
  if (has("reduce-scatter")) return &kReduceScatter;
  return nullptr;
}

template <class T>
void add(std::string& fields, const char* key, const T& value) {
  fields += fmt::format(", \"{}\": {}", key, value);
}

KinetoKernel send_or_receive(const SpanRow& s) {
  const bool sends = s.kind == SpanKind::pp_send;
  KinetoKernel out{fmt::format("ncclDevKernel_SendRecv {}", name_of(s.stream)), ""};
  add(out.fields, "Collective name", sends ? "\"send\"" : "\"recv\"");
  add(out.fields, sends ? "In msg nelems" : "Out msg nelems", s.bytes.value / kElementBytes);
  add(out.fields, "dtype", "\"BFloat16\"");
  add(out.fields, "Process Group Name", "\"pp\"");
  return out;
}

}  // namespace

KinetoKernel kineto_kernel(const SpanRow& s, const charts::Lane& lane, const Parallelism& p) {
  if (s.kind == SpanKind::pp_send || s.kind == SpanKind::pp_recv) return send_or_receive(s);
  const Collective* c = collective(s);
  if (!c) return {s.name, ""};
  const bool tp = s.stream == StreamKind::tp;
  const int n = tp ? p.tensor_model_parallel_size : p.gradient_ranks();
  KinetoKernel out{fmt::format("ncclDevKernel_{} {}", c->kernel, s.name), ""};
  add(out.fields, "Collective name", fmt::format("\"{}\"", c->name));
  add(out.fields, "Group size", n);
  add(out.fields, "Process Group Name", tp ? "\"tp\"" : "\"dp\"");
  if (s.bytes.value <= 0 || n <= 1) return out;
  const double buffer = static_cast<double>(s.bytes.value) / c->passes * n / (n - 1);
  const auto elements = std::llround(buffer / static_cast<double>(kElementBytes));
  std::string ranks;
  for (int i = 0; i < n; ++i)
    ranks += (i ? ", " : "") + std::to_string(tp ? lane.first_rank + i
                                                 : p.rank(0, i / p.context_parallel_size,
                                                          lane.stage, i % p.context_parallel_size));
  add(out.fields, "In msg nelems", c->gathers ? elements / n : elements);
  add(out.fields, "Out msg nelems", c->scatters ? elements / n : elements);
  add(out.fields, "dtype", "\"BFloat16\"");
  add(out.fields, "Process Group Ranks", "\"[" + ranks + "]\"");
  return out;
}

}  // namespace mllmsim::results
