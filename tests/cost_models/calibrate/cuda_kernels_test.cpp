// The CUDA kernels, emulated on the CPU, against formulas written down plainly.
#include "tests/cost_models/calibrate/cuda_emulation.hpp"

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wconversion"
#pragma GCC diagnostic ignored "-Wsign-compare"
#include "cost_models/calibrate/cuda/attention_kernels.cuh"
#include "cost_models/calibrate/cuda/memory_kernels.cuh"
#pragma GCC diagnostic pop

#include <gtest/gtest.h>

#include <random>

namespace mllmsim::calibrate::cuda {

alignas(128) unsigned char shared_memory[160 * 1024];

namespace {

using Index = std::size_t;

std::vector<bf16> random_values(Index n, unsigned seed) {
  std::minstd_rand generator(seed);
  std::normal_distribution<float> normal;
  std::vector<bf16> values(n);
  for (bf16& v : values) v = to_bf16(normal(generator));
  return values;
}

Pack* packs(std::vector<bf16>& x) { return reinterpret_cast<Pack*>(x.data()); }

void expect_near(const std::vector<bf16>& found, const std::vector<double>& expected,
                 double tolerance, const char* what) {
  ASSERT_EQ(found.size(), expected.size());
  double worst = 0;
  for (Index i = 0; i < found.size(); ++i)
    worst = std::max(worst, std::abs(static_cast<double>(to_float(found[i])) - expected[i]));
  EXPECT_LT(worst, tolerance) << what;
}

// Attention of one head of one sequence and its gradients, in double precision.
struct Reference {
  Reference(const AttentionArguments& a, int sequence) : a_(a) {
    begin_ = a.offsets[sequence];
    length_ = a.offsets[sequence + 1] - begin_;
  }

  Index query_at(int row, int head, int d) const {
    return static_cast<Index>(((begin_ + row) * a_.heads + head) * a_.head_dim + d);
  }
  Index key_at(int row, int head, int d) const {
    const int kv_head = head / (a_.heads / a_.kv_heads);
    return static_cast<Index>(((begin_ + row) * a_.kv_heads + kv_head) * a_.head_dim + d);
  }
  double dot(const bf16* x, Index at_x, const bf16* y, Index at_y) const {
    double sum = 0;
    for (Index d = 0; d < static_cast<Index>(a_.head_dim); ++d)
      sum +=
          static_cast<double>(to_float(x[at_x + d])) * static_cast<double>(to_float(y[at_y + d]));
    return sum;
  }

  void run(int head, std::vector<double>& output, std::vector<double>& dq, std::vector<double>& dk,
           std::vector<double>& dv) const {
    const double scale = 1 / std::sqrt(a_.head_dim);
    for (int i = 0; i < length_; ++i) {
      const int end = a_.causal ? i + 1 : length_;
      std::vector<double> p(static_cast<Index>(end)), dp(static_cast<Index>(end));
      double sum = 0, delta = 0;
      for (int j = 0; j < end; ++j)
        sum += p[Index(j)] =
            std::exp(scale * dot(a_.q, query_at(i, head, 0), a_.k, key_at(j, head, 0)));
      for (int j = 0; j < end; ++j) {
        p[Index(j)] /= sum;
        dp[Index(j)] = dot(a_.output_gradient, query_at(i, head, 0), a_.v, key_at(j, head, 0));
        delta += p[Index(j)] * dp[Index(j)];
      }
      for (int j = 0; j < end; ++j) {
        const double ds = scale * p[Index(j)] * (dp[Index(j)] - delta);
        for (int d = 0; d < a_.head_dim; ++d) {
          const Index query = query_at(i, head, d), key = key_at(j, head, d);
          output[query] += p[Index(j)] * static_cast<double>(to_float(a_.v[key]));
          dv[key] += p[Index(j)] * static_cast<double>(to_float(a_.output_gradient[query]));
          dq[query] += ds * static_cast<double>(to_float(a_.k[key]));
          dk[key] += ds * static_cast<double>(to_float(a_.q[query]));
        }
      }
    }
  }

 private:
  const AttentionArguments& a_;
  int begin_ = 0, length_ = 0;
};

// Sequences of 70 and 17 tokens: a tile and a bit, and less than a tile.
template <int D>
void check_attention(int heads, int kv_heads, bool causal) {
  const std::vector<int> offsets = {0, 70, 87};
  const Index queries = static_cast<Index>(87 * heads * D),
              keys = static_cast<Index>(87 * kv_heads * D);
  std::vector<bf16> q = random_values(queries, 1), k = random_values(keys, 2),
                    v = random_values(keys, 3), dout = random_values(queries, 4), out(queries),
                    dq(queries), dk(keys), dv(keys);
  std::vector<float> log_sum(static_cast<Index>(87 * heads)), delta(log_sum.size()),
      dq_sum(queries);
  AttentionArguments a{q.data(),     k.data(),       v.data(),  out.data(), log_sum.data(),
                       dout.data(),  dq.data(),      dk.data(), dv.data(),  dq_sum.data(),
                       delta.data(), offsets.data(), 2,         70,         87,
                       heads,        kv_heads,       D,         causal};
  const auto many = static_cast<unsigned>(heads);
  emulation::launch(attention_forward_kernel<D>, {2, many, 2}, kAttentionThreads, a);
  emulation::launch(attention_delta_kernel, {(87 * many + 3) / 4}, kAttentionThreads, a);
  emulation::launch(attention_backward_kernel<D>, {2, static_cast<unsigned>(kv_heads), 2},
                    kAttentionThreads, a);
  emulation::launch(attention_round_kernel, {1}, 32, a);

  std::vector<double> o(queries), rq(queries), rk(keys), rv(keys);
  for (int sequence = 0; sequence < 2; ++sequence)
    for (int head = 0; head < heads; ++head) Reference(a, sequence).run(head, o, rq, rk, rv);
  // Weights and gradients pass through bf16 (8 bits) and sums of them reach about 4.
  expect_near(out, o, 0.03, "output");
  expect_near(dq, rq, 0.03, "dq");
  expect_near(dk, rk, 0.06, "dk");
  expect_near(dv, rv, 0.06, "dv");
}

TEST(CudaKernels, CausalAttentionWithSharedKeyHeads) { check_attention<64>(4, 2, true); }
TEST(CudaKernels, FullAttentionWithHeadDimension80) { check_attention<80>(1, 1, false); }
TEST(CudaKernels, FullAttentionWithHeadDimension128) { check_attention<128>(1, 1, false); }

TEST(CudaKernels, SharedMemoryFitsAnA100) {
  EXPECT_LE(forward_shared_bytes<128>(), 163 * 1024);
  EXPECT_LE(backward_shared_bytes<128>(), 163 * 1024);
}

// Row (0, ln 3, 0, ...) of eight: weights 1/10 and 3/10.
TEST(CudaKernels, SoftmaxAndCrossEntropy) {
  std::vector<bf16> x(8), y(8);
  x[1] = to_bf16(std::log(3.0f));
  emulation::launch(softmax_kernel, {1}, 64, packs(x), packs(y), static_cast<const int*>(nullptr),
                    1);
  EXPECT_NEAR(to_float(y[0]), 0.1, 0.002);
  EXPECT_NEAR(to_float(y[1]), 0.3, 0.002);
  const int label = 1;
  emulation::launch(softmax_kernel, {1}, 64, packs(x), packs(y), &label, 1);
  EXPECT_NEAR(to_float(y[1]), -0.7, 0.004);
}

// Alternating 3 and 4: mean square 12.5.
TEST(CudaKernels, NormOfARow) {
  std::vector<bf16> x(16), weight(16, to_bf16(2.0f)), y(16);
  for (Index i = 0; i < 16; ++i) x[i] = to_bf16(i % 2 ? 4.0f : 3.0f);
  float inverse_rms = 0;
  emulation::launch(norm_kernel, {1}, 32, packs(x), weight.data(), packs(y), &inverse_rms, 2);
  EXPECT_NEAR(inverse_rms, 1 / std::sqrt(12.5), 1e-5);
  EXPECT_NEAR(to_float(y[1]), 8 / std::sqrt(12.5), 0.01);
}

// The gradient in x is orthogonal to x, since scaling x changes nothing.
TEST(CudaKernels, NormBackwardIsOrthogonalToItsInput) {
  std::vector<bf16> x = random_values(64, 1), dy = random_values(64, 2), weight(64, to_bf16(1.0f)),
                    y(64), dx(64);
  float inverse_rms = 0;
  emulation::launch(norm_kernel, {1}, 32, packs(x), weight.data(), packs(y), &inverse_rms, 8);
  emulation::launch(norm_backward_kernel, {1}, 32, packs(x), packs(dy), weight.data(), &inverse_rms,
                    packs(dx), 8);
  float dot = 0, size = 0;
  for (Index i = 0; i < 64; ++i) {
    dot += to_float(x[i]) * to_float(dx[i]);
    size += std::abs(to_float(x[i]) * to_float(dx[i]));
  }
  EXPECT_GT(size, 10);
  EXPECT_NEAR(dot / size, 0, 0.01);
}

// Two rows, x = dy = 1 and r = 2: each contributes 2.
TEST(CudaKernels, NormWeightGradientSumsRows) {
  std::vector<bf16> ones(2 * 40, to_bf16(1.0f));
  std::vector<float> inverse_rms(2, 2.0f), dweight(40);
  emulation::launch(norm_weight_gradient_kernel, {2, 2}, 32, ones.data(), ones.data(),
                    inverse_rms.data(), dweight.data(), 2, 40);
  EXPECT_EQ(dweight, std::vector<float>(40, 4.0f));
}

TEST(CudaKernels, AddGatherAndGelu) {
  std::vector<bf16> a(24, to_bf16(1.0f)), b(24, to_bf16(2.0f)), c(24);
  emulation::launch(add_kernel, {1}, 32, packs(a), packs(b), packs(c), 3L);
  EXPECT_EQ(to_float(c[23]), 3.0f);
  for (Index i = 16; i < 24; ++i) a[i] = to_bf16(7.0f);
  const int index[] = {2, 0};
  emulation::launch(gather_kernel, {2}, 32, packs(a), index, packs(c), 1);
  EXPECT_EQ(to_float(c[0]), 7.0f);
  EXPECT_EQ(to_float(c[8]), 1.0f);
  emulation::launch(gelu_kernel, {1}, 32, packs(a), packs(c), 1L);
  EXPECT_NEAR(to_float(c[0]), 0.841, 0.004);  // x Phi(x) at 1
}

// The first step of Adam without bias correction: m = 0.1 g, v = 0.05 g^2, so the weight moves by
// rate * 0.1 / sqrt(0.05) whatever g.
TEST(CudaKernels, AdamStep) {
  std::vector<float> g(33, 5.0f), w(33, 1.0f), m(33), v(33);
  std::vector<bf16> copy(33);
  emulation::launch(adam_kernel, {1}, 32,
                    AdamState{g.data(), w.data(), m.data(), v.data(), copy.data()}, 33L);
  EXPECT_NEAR(w[32], 1.0 - 1e-4 * 0.1 / std::sqrt(0.05), 1e-6);
  EXPECT_EQ(to_float(copy[32]), 1.0f);
}

TEST(CudaKernels, FilledWithNormalNumbers) {
  std::vector<float> x(20000);
  emulation::launch(fill_float_kernel, {1}, 32, x.data(), 20000L);
  double mean = 0, square = 0;
  for (float value : x) mean += value / 20000.0, square += value * value / 20000.0;
  EXPECT_NEAR(mean, 0, 0.03);
  EXPECT_NEAR(square, 1, 0.05);
}

}  // namespace
}  // namespace mllmsim::calibrate::cuda
