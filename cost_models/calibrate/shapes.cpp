#include "cost_models/calibrate/shapes.hpp"

#include <algorithm>
#include <cmath>

namespace mllmsim::calibrate {
namespace {

using Size = std::int64_t;

// Point i of the R3 sequence (Roberts, 2018; generalised golden ratio) in the cube of log m, log n,
// log k from 64 to 16384, rounded to the multiples of 16 that models use.
costs::Gemm cover_point(int i, costs::GemmPass pass) {
  constexpr double kRatio = 1.2207440846057596;
  const auto dimension = [i](int axis) {
    const double x = 0.5 + i * std::pow(kRatio, -axis);
    const double size = std::exp2(6.0 + 8.0 * (x - std::floor(x)));
    return std::max<Size>(64, std::llround(size / 16) * 16);
  };
  return {dimension(1), dimension(2), dimension(3), pass, 1};
}

struct Linear {
  Size inputs, outputs;
};

// qkv, attention output, and both layers of an MLP four times as wide.
std::vector<Linear> typical_layers(Size hidden) {
  return {{hidden, 3 * hidden}, {hidden, hidden}, {hidden, 4 * hidden}, {4 * hidden, hidden}};
}

std::vector<Linear> model_layers(const ModelShape& m) {
  const Size head_dim = m.hidden / m.heads;
  const Size queries = m.heads * head_dim / m.tp;
  const Size keys = std::max<Size>(1, m.kv_heads / m.tp) * head_dim;
  return {{m.hidden, queries + 2 * keys},
          {queries, m.hidden},
          {m.hidden, 2 * m.ffn / m.tp},  // gate and up projection in one
          {m.hidden, m.ffn / m.tp},
          {m.ffn / m.tp, m.hidden}};
}

void add_layers(std::vector<Task>& tasks, const std::vector<Linear>& layers,
                const std::vector<Size>& token_counts) {
  for (Size tokens : token_counts)
    for (const Linear& layer : layers)
      for (const costs::Gemm& g : linear_layer(tokens, layer.inputs, layer.outputs))
        tasks.push_back(GemmTask{g, Mode::burst});
}

struct Heads {
  Size heads, kv_heads, head_dim;
};

void add_attention(std::vector<Task>& tasks, const Heads& h, bool causal,
                   const std::vector<Size>& lengths, const std::vector<Size>& token_counts) {
  for (Size length : lengths)
    for (Size tokens : token_counts) {
      if (tokens < length && tokens != token_counts.front()) continue;
      const Size batch = std::max<Size>(1, tokens / length);
      for (bool backward : {false, true})
        tasks.push_back(
            AttentionTask{length, batch, h.heads, h.kv_heads, h.head_dim, causal, backward});
    }
}

// 1 KB to 1 GB; factor 2, or 8 when quick.
std::vector<Size> buffer_sizes(bool quick, Size smallest) {
  std::vector<Size> sizes;
  for (Size bytes = smallest; bytes <= Size{1} << 30; bytes *= quick ? 8 : 2)
    sizes.push_back(bytes);
  return sizes;
}

}  // namespace

std::vector<costs::Gemm> linear_layer(Size tokens, Size inputs, Size outputs) {
  return {{tokens, outputs, inputs, costs::GemmPass::forward, 1},
          {tokens, inputs, outputs, costs::GemmPass::input_gradient, 1},
          {inputs, outputs, tokens, costs::GemmPass::weight_gradient, 1}};
}

std::vector<Task> gemm_tasks(bool quick, const std::vector<ModelShape>& models) {
  std::vector<Task> tasks;
  for (const ModelShape& m : models)
    add_layers(tasks, model_layers(m),
               quick ? std::vector<Size>{4096} : std::vector<Size>{1024, 2048, 4096, 8192});
  const std::vector<Size> hiddens = quick ? std::vector<Size>{1024, 4096, 8192}
                                          : std::vector<Size>{1024, 3200, 4096, 5120, 6144, 8192};
  for (Size hidden : hiddens)
    add_layers(tasks, typical_layers(hidden),
               quick ? std::vector<Size>{4096} : std::vector<Size>{1024, 4096, 8192});
  for (int i = 0; i < (quick ? 40 : 180); ++i)
    for (costs::GemmPass pass : {costs::GemmPass::forward, costs::GemmPass::input_gradient,
                                 costs::GemmPass::weight_gradient})
      if (!quick || pass == costs::GemmPass::forward)
        tasks.push_back(GemmTask{cover_point(i, pass), Mode::burst});
  // The same in fp8, where a GPU has it: layers of training, and a cover.
  const auto add_fp8 = [&](costs::Gemm g) {
    g.format = NumberFormat::fp8;
    tasks.push_back(GemmTask{g, Mode::burst});
  };
  for (Size hidden : quick ? std::vector<Size>{4096} : std::vector<Size>{2048, 4096, 8192})
    for (const Linear& layer : typical_layers(hidden))
      for (const costs::Gemm& g : linear_layer(8192, layer.inputs, layer.outputs)) add_fp8(g);
  for (int i = 0; i < (quick ? 20 : 100); ++i) add_fp8(cover_point(i, costs::GemmPass::forward));
  // Experts' products, as many in a launch as a rank has: narrow experts, and wide ones.
  for (const Linear& layer : {Linear{2048, 1536}, Linear{768, 2048}, Linear{4096, 3072},
                              Linear{7168, 4096}, Linear{2048, 7168}})
    for (Size rows : quick ? std::vector<Size>{512} : std::vector<Size>{128, 512, 2048})
      for (Size experts : quick ? std::vector<Size>{8} : std::vector<Size>{4, 8, 32})
        for (costs::Gemm g : linear_layer(rows, layer.inputs, layer.outputs)) {
          g.batch = experts;
          g.grouped = true;
          tasks.push_back(GemmTask{g, Mode::burst});
        }
  // Last, so that the bursts before them find a cool GPU.
  for (Size n : quick ? std::vector<Size>{8192} : std::vector<Size>{2048, 4096, 8192, 16384})
    tasks.push_back(GemmTask{{n, n, n, costs::GemmPass::forward, 1}, Mode::sustained});
  for (Size hidden : hiddens)
    for (const costs::Gemm& g : linear_layer(8192, hidden, 4 * hidden))
      if (!quick || (hidden == 4096 && g.pass != costs::GemmPass::input_gradient))
        tasks.push_back(GemmTask{g, Mode::sustained});
  return tasks;
}

std::vector<Task> attention_tasks(bool quick, const std::vector<ModelShape>& models) {
  std::vector<Task> tasks;
  const std::vector<Size> long_ones =
      quick ? std::vector<Size>{1024, 4096, 16384}
            : std::vector<Size>{128, 256, 512, 1024, 2048, 4096, 8192, 16384, 32768};
  const std::vector<Size> tokens = quick ? std::vector<Size>{4096} : std::vector<Size>{4096, 16384};
  for (const ModelShape& m : models) {
    const Heads local{m.heads / m.tp, std::max<Size>(1, m.kv_heads / m.tp), m.hidden / m.heads};
    for (bool causal : {true, false}) add_attention(tasks, local, causal, long_ones, tokens);
  }
  for (const Heads& h :
       quick ? std::vector<Heads>{{8, 8, 128}}
             : std::vector<Heads>{{8, 8, 128}, {8, 2, 128}, {32, 8, 128}, {16, 16, 64}})
    add_attention(tasks, h, true, long_ones, tokens);
  const std::vector<Size> tiles =
      quick ? std::vector<Size>{1024} : std::vector<Size>{256, 577, 1024, 2048, 4096};
  for (const Heads& h : {Heads{16, 16, 64}, Heads{16, 16, 80}, Heads{25, 25, 128}})
    add_attention(tasks, h, false, tiles,
                  quick ? std::vector<Size>{16384} : std::vector<Size>{1024, 8192, 32768});
  return tasks;
}

std::vector<Task> memory_tasks(bool quick) {
  std::vector<Task> tasks;
  const std::vector<Size> rows =
      quick ? std::vector<Size>{512, 8192} : std::vector<Size>{64, 512, 2048, 8192, 32768};
  const std::vector<Size> lengths =
      quick ? std::vector<Size>{4096} : std::vector<Size>{1024, 3200, 5120, 8192};
  for (Size row_length : lengths)
    for (Size r : rows) {
      for (bool activation : {false, true})
        tasks.push_back(MemoryTask{costs::MemoryOp::elementwise, r, row_length, activation});
      for (costs::MemoryOp op : {costs::MemoryOp::norm, costs::MemoryOp::norm_backward,
                                 costs::MemoryOp::softmax, costs::MemoryOp::embedding})
        tasks.push_back(MemoryTask{op, r, row_length, false});
    }
  const std::vector<Size> vocabularies =
      quick ? std::vector<Size>{32000} : std::vector<Size>{16000, 32000, 92544, 128256};
  for (Size vocabulary : vocabularies)
    for (Size r : quick ? std::vector<Size>{2048} : std::vector<Size>{256, 2048, 8192})
      tasks.push_back(MemoryTask{costs::MemoryOp::cross_entropy, r, vocabulary, false});
  for (Size parameters = Size{1} << 20; parameters <= Size{1} << 28; parameters *= quick ? 64 : 4)
    tasks.push_back(MemoryTask{costs::MemoryOp::optimizer, 1, parameters, false});
  return tasks;
}

std::vector<Task> copy_tasks(bool quick) {
  std::vector<Task> tasks;
  for (CopyKind kind : {CopyKind::h2d, CopyKind::d2h, CopyKind::device})
    for (Size bytes : buffer_sizes(quick, 65536)) tasks.push_back(CopyTask{kind, bytes});
  return tasks;
}

std::vector<Task> communication_tasks(bool quick, int gpus, int nodes) {
  std::vector<costs::GroupShape> groups;
  for (int n = 2; n <= nodes; n *= 2) {
    groups.push_back({n, n, 1});
    if (gpus > 1) groups.push_back({n * gpus, n, 1});
  }
  for (int ranks = 2; ranks <= gpus; ranks *= 2)
    if (!quick || ranks == 2 || 2 * ranks > gpus) groups.push_back({ranks, 1, 1});
  std::vector<Task> tasks;
  const std::vector<Size> sizes = buffer_sizes(quick, 1024);
  for (const costs::GroupShape& group : groups)
    for (costs::CollectiveOp op :
         {costs::CollectiveOp::all_gather, costs::CollectiveOp::reduce_scatter,
          costs::CollectiveOp::all_reduce, costs::CollectiveOp::all_to_all})
      for (Size bytes : sizes) tasks.push_back(CollectiveTask{{op, Bytes{bytes}, group}});
  for (Size bytes : sizes) {
    if (nodes > 1) tasks.push_back(P2pTask{bytes, false});
    if (gpus > 1) tasks.push_back(P2pTask{bytes, true});
  }
  return tasks;
}

std::vector<Task> overlap_tasks(bool quick, int gpus) {
  if (gpus < 2) return {};
  std::vector<Task> tasks;
  const std::vector<costs::Gemm> gemms = {{8192, 8192, 8192, costs::GemmPass::forward, 1},
                                          {4096, 4096, 4096, costs::GemmPass::forward, 1},
                                          {2048, 16384, 4096, costs::GemmPass::forward, 1}};
  const std::vector<Size> sizes =
      quick ? std::vector<Size>{256 << 20} : std::vector<Size>{16 << 20, 256 << 20};
  for (costs::CollectiveOp op :
       {costs::CollectiveOp::all_gather, costs::CollectiveOp::reduce_scatter,
        costs::CollectiveOp::all_reduce})
    for (Size bytes : sizes)
      for (std::size_t i = 0; i < (quick ? 1 : gemms.size()); ++i)
        tasks.push_back(OverlapTask{{op, Bytes{bytes}, {gpus, 1, 1}}, gemms[i]});
  return tasks;
}

}  // namespace mllmsim::calibrate
