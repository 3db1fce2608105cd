// Attention by cuDNN's fused graphs, through the header-only cuDNN frontend (1.23, cuDNN 9): the
// kernels that trainers use. Tensors are [batch, length, heads, head_dim] in memory.
#include <cudnn_frontend.h>
#include <fmt/core.h>

#include <cmath>
#include <unordered_map>

#include "cost_models/calibrate/cuda/tasks.hpp"

namespace mllmsim::calibrate::cuda {
namespace {

namespace fe = cudnn_frontend;
using fe::graph::Graph;
using Tensor = std::shared_ptr<fe::graph::Tensor_attributes>;
using Pointers = std::unordered_map<std::int64_t, void*>;
using Handle = std::shared_ptr<cudnnContext>;

enum Id : std::int64_t { kQ = 1, kK, kV, kOutput, kStats, kOutputGradient, kDq, kDk, kDv };

Handle make_handle() {
  cudnnHandle_t handle = nullptr;
  if (cudnnCreate(&handle) != CUDNN_STATUS_SUCCESS) throw EnvironmentError("cudnnCreate failed");
  return Handle(handle, cudnnDestroy);
}

void check_graph(fe::error_t error, const char* what) {
  if (error.is_bad()) throw CannotMeasure(fmt::format("cuDNN, {}: {}", what, error.get_message()));
}

std::vector<std::int64_t> dimensions(const AttentionTask& t, std::int64_t heads) {
  return {t.batch, heads, t.length, t.head_dim};
}
std::vector<std::int64_t> strides(const AttentionTask& t, std::int64_t heads) {
  return {t.length * heads * t.head_dim, t.head_dim, heads * t.head_dim, 1};
}

Tensor input(Graph& graph, const AttentionTask& t, std::int64_t heads, Id id) {
  return graph.tensor(fe::graph::Tensor_attributes()
                          .set_uid(id)
                          .set_dim(dimensions(t, heads))
                          .set_stride(strides(t, heads)));
}

void output(const Tensor& tensor, const AttentionTask& t, std::int64_t heads, Id id) {
  tensor->set_output(true).set_uid(id).set_dim(dimensions(t, heads)).set_stride(strides(t, heads));
}

std::shared_ptr<Graph> empty_graph() {
  auto graph = std::make_shared<Graph>();
  graph->set_io_data_type(fe::DataType_t::BFLOAT16)
      .set_intermediate_data_type(fe::DataType_t::FLOAT)
      .set_compute_data_type(fe::DataType_t::FLOAT);
  return graph;
}

float scale(const AttentionTask& t) { return 1.0f / std::sqrt(static_cast<float>(t.head_dim)); }

std::shared_ptr<Graph> forward_graph(const AttentionTask& t) {
  auto graph = empty_graph();
  const Tensor q = input(*graph, t, t.heads, kQ), k = input(*graph, t, t.kv_heads, kK),
               v = input(*graph, t, t.kv_heads, kV);
  auto [o, stats] = graph->sdpa(q, k, v,
                                fe::graph::SDPA_attributes()
                                    .set_name("forward")
                                    .set_generate_stats(true)
                                    .set_causal_mask(t.causal)
                                    .set_attn_scale(scale(t)));
  output(o, t, t.heads, kOutput);
  stats->set_output(true).set_uid(kStats).set_data_type(fe::DataType_t::FLOAT);
  return graph;
}

std::shared_ptr<Graph> backward_graph(const AttentionTask& t) {
  auto graph = empty_graph();
  const Tensor q = input(*graph, t, t.heads, kQ), k = input(*graph, t, t.kv_heads, kK),
               v = input(*graph, t, t.kv_heads, kV), o = input(*graph, t, t.heads, kOutput),
               output_gradient = input(*graph, t, t.heads, kOutputGradient);
  const Tensor stats = graph->tensor(fe::graph::Tensor_attributes()
                                         .set_uid(kStats)
                                         .set_dim({t.batch, t.heads, t.length, 1})
                                         .set_stride({t.heads * t.length, t.length, 1, 1})
                                         .set_data_type(fe::DataType_t::FLOAT));
  auto [dq, dk, dv] = graph->sdpa_backward(q, k, v, o, output_gradient, stats,
                                           fe::graph::SDPA_backward_attributes()
                                               .set_name("backward")
                                               .set_causal_mask(t.causal)
                                               .set_attn_scale(scale(t)));
  output(dq, t, t.heads, kDq);
  output(dk, t, t.kv_heads, kDk);
  output(dv, t, t.kv_heads, kDv);
  return graph;
}

Kernel executable(const std::shared_ptr<Graph>& graph, const Handle& handle,
                  const std::vector<Buffer<bf16>>& buffers, const Buffer<float>& stats) {
  check_graph(graph->build(handle.get(), {fe::HeurMode_t::A}), "no kernel for this shape");
  std::int64_t bytes = 0;
  check_graph(graph->get_workspace_size(bytes), "workspace");
  const auto workspace = device_buffer<char>(std::max<std::int64_t>(bytes, 1));
  return [=](cudaStream_t stream) {
    Pointers pointers{
        {kQ, buffers[0].get()},      {kK, buffers[1].get()},  {kV, buffers[2].get()},
        {kOutput, buffers[3].get()}, {kStats, stats.get()},   {kOutputGradient, buffers[4].get()},
        {kDq, buffers[5].get()},     {kDk, buffers[6].get()}, {kDv, buffers[7].get()}};
    cudnnSetStream(handle.get(), stream);
    check_graph(graph->execute(handle.get(), pointers, workspace.get()), "launch");
  };
}

}  // namespace

std::string attention_kernel_name() {
  const std::size_t version = cudnnGetVersion();
  return fmt::format("cudnn {}.{}.{}", version / 10000, version / 100 % 100, version % 100);
}

Kernel attention_kernel(const AttentionTask& t) {
  const Handle handle = make_handle();
  const std::int64_t queries = t.batch * t.length * t.heads * t.head_dim;
  const std::int64_t keys = t.batch * t.length * t.kv_heads * t.head_dim;
  std::vector<Buffer<bf16>> buffers;
  for (std::int64_t n : {queries, keys, keys, queries, queries, queries, keys, keys})
    buffers.push_back(random_buffer<bf16>(n));
  const auto stats = device_buffer<float>(t.batch * t.length * t.heads);
  const Kernel forward = executable(forward_graph(t), handle, buffers, stats);
  if (!t.backward) return forward;
  forward(nullptr);  // the backward pass needs its results
  check_cuda(cudaDeviceSynchronize(), "attention");
  return executable(backward_graph(t), handle, buffers, stats);
}

}  // namespace mllmsim::calibrate::cuda
