// GEMMs of a linear layer by cuBLAS, in the layouts of a trainer that keeps weights as
// [outputs, inputs] row-major. cuBLAS is column-major: a row-major [a, b] is its b x a.
//
//   forward          y[m,n]  = x[m,k] W[n,k]^T            C(n x m) = W(k x n)^T x(k x m)
//   input gradient   dx[m,n] = dy[m,k] W[k,n]             C(n x m) = W(n x k) dy(k x m)
//   weight gradient  dW[n,m] += dy[k,n]^T x[k,m] in fp32  C(m x n) += x(m x k) dy(n x k)^T
#include <cublas_v2.h>
#include <fmt/core.h>

#include "cost_models/calibrate/cuda/tasks.hpp"

namespace mllmsim::calibrate::cuda {
namespace {

constexpr std::size_t kWorkspace = 32 << 20;  // what cuBLAS recommends from Hopper on

void check_cublas(cublasStatus_t status, const char* what) {
  if (status == CUBLAS_STATUS_SUCCESS) return;
  throw EnvironmentError(fmt::format("{}: {}", what, cublasGetStatusString(status)));
}

struct Layout {
  cublasOperation_t a, b;
  int rows, columns, inner;
  int pitch_a, pitch_b;
};

Layout layout(const costs::Gemm& g) {
  const int m = static_cast<int>(g.m), n = static_cast<int>(g.n), k = static_cast<int>(g.k);
  switch (g.pass) {
    case costs::GemmPass::forward:
      return {CUBLAS_OP_T, CUBLAS_OP_N, n, m, k, k, k};
    case costs::GemmPass::input_gradient:
      return {CUBLAS_OP_N, CUBLAS_OP_N, n, m, k, n, k};
    case costs::GemmPass::weight_gradient:
      return {CUBLAS_OP_N, CUBLAS_OP_T, m, n, k, m, n};
  }
  throw InternalError("unknown GEMM pass");
}

}  // namespace

CublasHandle::CublasHandle() : workspace_(device_buffer<char>(kWorkspace)) {
  check_cublas(cublasCreate(&handle_), "cublasCreate");
}

CublasHandle::~CublasHandle() { cublasDestroy(handle_); }

cublasContext* CublasHandle::on(cudaStream_t stream) const {
  check_cublas(cublasSetStream(handle_, stream), "cublasSetStream");
  // cublasSetStream puts cuBLAS's own, smaller workspace back.
  check_cublas(cublasSetWorkspace(handle_, workspace_.get(), kWorkspace), "cublasSetWorkspace");
  return handle_;
}

std::string CublasHandle::version() const {
  int version = 0;
  check_cublas(cublasGetVersion(handle_, &version), "cublasGetVersion");
  return fmt::format("{}.{}.{}", version / 10000, version / 100 % 100, version % 100);
}

Kernel gemm_kernel(const costs::Gemm& g, const CublasHandle& cublas) {
  const Layout l = layout(g);
  const bool wide = g.pass == costs::GemmPass::weight_gradient;
  const std::int64_t step_a = std::int64_t{l.rows} * l.inner;
  const std::int64_t step_b = std::int64_t{l.inner} * l.columns;
  const std::int64_t step_c = std::int64_t{l.rows} * l.columns;
  const auto a = random_buffer<bf16>(step_a * g.batch);
  const auto b = random_buffer<bf16>(step_b * g.batch);
  const auto c = random_buffer<bf16>(step_c * g.batch * (wide ? 2 : 1));
  if (wide)
    check_cuda(cudaMemset(c.get(), 0, std::size_t(step_c * g.batch) * sizeof(float)), "cudaMemset");
  const int batch = static_cast<int>(g.batch);
  return [=, &cublas](cudaStream_t stream) {
    const float one = 1.0f, beta = wide ? 1.0f : 0.0f;
    if (batch > 1) {
      check_cublas(cublasGemmStridedBatchedEx(
                       cublas.on(stream), l.a, l.b, l.rows, l.columns, l.inner, &one, a.get(),
                       CUDA_R_16BF, l.pitch_a, step_a, b.get(), CUDA_R_16BF, l.pitch_b, step_b,
                       &beta, c.get(), wide ? CUDA_R_32F : CUDA_R_16BF, l.rows, step_c, batch,
                       CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT),
                   "cublasGemmStridedBatchedEx");
      return;
    }
    check_cublas(cublasGemmEx(cublas.on(stream), l.a, l.b, l.rows, l.columns, l.inner, &one,
                              a.get(), CUDA_R_16BF, l.pitch_a, b.get(), CUDA_R_16BF, l.pitch_b,
                              &beta, c.get(), wide ? CUDA_R_32F : CUDA_R_16BF, l.rows,
                              CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT),
                 "cublasGemmEx");
  };
}

}  // namespace mllmsim::calibrate::cuda
