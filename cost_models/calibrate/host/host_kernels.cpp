#include "cost_models/calibrate/host/host_kernels.hpp"

#include <Eigen/Core>
#include <cmath>
#include <cstring>
#include <memory>
#include <random>

#include "sim/base/errors.hpp"

namespace mllmsim::calibrate::host {
namespace {

using Matrix = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
using Row = Eigen::Array<float, 1, Eigen::Dynamic>;

Matrix random_matrix(std::int64_t rows, std::int64_t columns) {
  std::minstd_rand generator(1);
  std::normal_distribution<float> normal;
  return Matrix::NullaryExpr(rows, columns, [&] { return normal(generator); });
}

// Adapts a kernel over matrices to a copyable function.
template <class State, class Body>
Kernel with_state(State state, Body body) {
  auto shared = std::make_shared<State>(std::move(state));
  return [shared, body] { body(*shared); };
}

struct Operands {
  Matrix a, b, c;
};

// One head of one sequence: S = scale Q K^T, P = softmax(S), O = P V.
struct Head {
  Matrix q, k, v, output, output_gradient, p;
  Matrix dq, dk, dv;
};

void softmax_rows(Matrix& s, bool causal) {
  for (Eigen::Index i = 0; i < s.rows(); ++i) {
    const Eigen::Index visible = causal ? i + 1 : s.cols();
    auto row = s.row(i).head(visible).array();
    row = (row - row.maxCoeff()).exp();
    row /= row.sum();
    s.row(i).tail(s.cols() - visible).setZero();
  }
}

void attention_forward(Head& h, bool causal) {
  const float scale = 1.0f / std::sqrt(static_cast<float>(h.q.cols()));
  h.p.noalias() = scale * h.q * h.k.transpose();
  softmax_rows(h.p, causal);
  h.output.noalias() = h.p * h.v;
}

// P is kept from the forward pass, unlike a flash kernel, which computes it again.
void attention_backward(Head& h) {
  const float scale = 1.0f / std::sqrt(static_cast<float>(h.q.cols()));
  h.dv.noalias() = h.p.transpose() * h.output_gradient;
  Matrix ds = h.output_gradient * h.v.transpose();
  const Eigen::VectorXf dot = (h.output_gradient.cwiseProduct(h.output)).rowwise().sum();
  ds = (scale * h.p.array() * (ds.colwise() - dot).array()).matrix();
  h.dq.noalias() = ds * h.k;
  h.dk.noalias() = ds.transpose() * h.q;
}

void norm(const Matrix& x, Matrix& y) {
  for (Eigen::Index i = 0; i < x.rows(); ++i) {
    const float mean_square = x.row(i).squaredNorm() / static_cast<float>(x.cols());
    y.row(i) = x.row(i) / std::sqrt(mean_square + 1e-6f);
  }
}

// dx = r (dy - x r^2 mean(x dy)) with r = 1 / rms(x), unit weights.
void norm_backward(const Matrix& x, const Matrix& dy, Matrix& dx) {
  for (Eigen::Index i = 0; i < x.rows(); ++i) {
    const float n = static_cast<float>(x.cols());
    const float r = 1.0f / std::sqrt(x.row(i).squaredNorm() / n + 1e-6f);
    const float mean = x.row(i).dot(dy.row(i)) / n;
    dx.row(i) = r * (dy.row(i) - x.row(i) * (r * r * mean));
  }
}

// Gradient of -log softmax(x)[0].
void cross_entropy(const Matrix& x, Matrix& dx) {
  dx = x;
  softmax_rows(dx, false);
  dx.col(0).array() -= 1.0f;
}

// Rows in an order that defeats prefetching: multiplication by an odd number permutes 2^k.
void gather(const Matrix& table, Matrix& out) {
  for (Eigen::Index i = 0; i < out.rows(); ++i) out.row(i) = table.row((i * 40503) % table.rows());
}

struct Adam {
  Row gradient, weight, first, second, copy;
};

void adam_step(Adam& s) {
  s.first = 0.9f * s.first + 0.1f * s.gradient;
  s.second = 0.95f * s.second + 0.05f * s.gradient.square();
  s.weight -= 1e-4f * s.first / (s.second.sqrt() + 1e-8f);
  s.copy = s.weight;
}

Kernel adam_kernel(std::int64_t parameters) {
  const Row random = random_matrix(1, parameters).array();
  return with_state(Adam{random, random, Row::Zero(parameters), Row::Zero(parameters), random},
                    adam_step);
}

}  // namespace

Kernel gemm_kernel(const costs::Gemm& g) {
  if (g.batch > 1) {  // experts one after the other, in the same place
    costs::Gemm one = g;
    one.batch = 1;
    return [kernel = gemm_kernel(one), batch = g.batch] {
      for (std::int64_t i = 0; i < batch; ++i) kernel();
    };
  }
  switch (g.pass) {
    case costs::GemmPass::forward:
      return with_state(
          Operands{random_matrix(g.m, g.k), random_matrix(g.n, g.k), Matrix::Zero(g.m, g.n)},
          [](Operands& o) { o.c.noalias() = o.a * o.b.transpose(); });
    case costs::GemmPass::input_gradient:
      return with_state(
          Operands{random_matrix(g.m, g.k), random_matrix(g.k, g.n), Matrix::Zero(g.m, g.n)},
          [](Operands& o) { o.c.noalias() = o.a * o.b; });
    case costs::GemmPass::weight_gradient:
      return with_state(
          Operands{random_matrix(g.k, g.m), random_matrix(g.k, g.n), Matrix::Zero(g.n, g.m)},
          [](Operands& o) { o.c.noalias() += o.b.transpose() * o.a; });
  }
  throw InternalError("unknown GEMM pass");
}

Kernel attention_kernel(const AttentionTask& t) {
  const Matrix x = random_matrix(t.length, t.head_dim);
  Head head{x, x, x, x, x, Matrix(t.length, t.length), x, x, x};
  attention_forward(head, t.causal);
  const std::int64_t repeats = t.batch * t.heads;  // all heads cost the same
  return with_state(std::move(head), [repeats, t](Head& h) {
    for (std::int64_t i = 0; i < repeats; ++i)
      t.backward ? attention_backward(h) : attention_forward(h, t.causal);
  });
}

Kernel memory_kernel(const MemoryTask& t) {
  if (t.op == costs::MemoryOp::optimizer) return adam_kernel(t.rows * t.row_length);
  Operands operands{random_matrix(t.rows, t.row_length), {}, Matrix(t.rows, t.row_length)};
  if (t.op == costs::MemoryOp::elementwise || t.op == costs::MemoryOp::activation_backward ||
      t.op == costs::MemoryOp::cross_entropy_backward || t.op == costs::MemoryOp::norm_backward)
    operands.b = operands.a;
  switch (t.op) {
    case costs::MemoryOp::elementwise:
    case costs::MemoryOp::activation:
    case costs::MemoryOp::activation_backward:
    case costs::MemoryOp::cross_entropy_backward:  // as an addition: it is not written out here
      if (!t.activation && t.op != costs::MemoryOp::activation)
        return with_state(std::move(operands), [](Operands& o) { o.c = o.a + o.b; });
      return with_state(std::move(operands), [](Operands& o) {  // GELU, tanh form
        const auto x = o.a.array();
        o.c = (0.5f * x * (1.0f + (0.797885f * (x + 0.044715f * x.cube())).tanh())).matrix();
      });
    case costs::MemoryOp::norm:
      return with_state(std::move(operands), [](Operands& o) { norm(o.a, o.c); });
    case costs::MemoryOp::norm_backward:
      return with_state(std::move(operands), [](Operands& o) { norm_backward(o.a, o.b, o.c); });
    case costs::MemoryOp::softmax:
      return with_state(std::move(operands), [](Operands& o) {
        o.c = o.a;
        softmax_rows(o.c, false);
      });
    case costs::MemoryOp::embedding:
      return with_state(std::move(operands), [](Operands& o) { gather(o.a, o.c); });
    case costs::MemoryOp::cross_entropy:
      return with_state(std::move(operands), [](Operands& o) { cross_entropy(o.a, o.c); });
    case costs::MemoryOp::optimizer:
    case costs::MemoryOp::quantise_mxfp8:
      break;
  }
  throw InternalError("unknown memory-bound kernel");
}

Kernel copy_kernel(const CopyTask& t) {
  const auto bytes = static_cast<std::size_t>(t.bytes);
  using Buffers = std::pair<std::vector<char>, std::vector<char>>;
  return with_state(
      Buffers{std::vector<char>(bytes, 1), std::vector<char>(bytes, 2)},
      [](Buffers& b) { std::memcpy(b.second.data(), b.first.data(), b.first.size()); });
}

}  // namespace mllmsim::calibrate::host
