// GEMMs of quantised inputs by cuBLASLt, one scale per tensor, as Transformer Engine runs them:
// activations and weights in e4m3, gradients in e5m2, every product with both inputs by rows of the
// inner dimension (TN, all that Hopper has), so that all passes are one layout:
//
//   C(n x m) = A(k x n)^T B(k x m)      bf16; a weight gradient adds into fp32
//
// Inputs are in place, already quantised: layers quantise in kernels of their own.
#include <cublasLt.h>
#include <cuda_fp8.h>
#include <fmt/core.h>

#include <algorithm>
#include <random>

#include "cost_models/calibrate/cuda/tasks.hpp"

namespace mllmsim::calibrate::cuda {
namespace {

constexpr std::size_t kFp8Workspace = 32 << 20;
constexpr int kFirstWithFp8 = 89;          // compute capability of Ada
constexpr std::int64_t kAlignment = 16;    // of every dimension
constexpr std::size_t kPattern = 1 << 20;  // random values, repeated

void check_lt(cublasStatus_t status, const char* what) {
  if (status == CUBLAS_STATUS_SUCCESS) return;
  const std::string text = fmt::format("{}: {}", what, cublasGetStatusString(status));
  if (status == CUBLAS_STATUS_NOT_SUPPORTED) throw CannotMeasure(text);
  throw EnvironmentError(text);
}

template <class Handle, cublasStatus_t (*Destroy)(Handle)>
struct Owner {
  Handle value = nullptr;
  Owner() = default;
  Owner(const Owner&) = delete;
  Owner& operator=(const Owner&) = delete;
  ~Owner() {
    if (value) Destroy(value);
  }
};
using LtHandle = Owner<cublasLtHandle_t, cublasLtDestroy>;
using Operation = Owner<cublasLtMatmulDesc_t, cublasLtMatmulDescDestroy>;
using Matrix = Owner<cublasLtMatrixLayout_t, cublasLtMatrixLayoutDestroy>;
using Preference = Owner<cublasLtMatmulPreference_t, cublasLtMatmulPreferenceDestroy>;

template <class Number>
Buffer<char> random_fp8(std::int64_t count) {
  std::vector<Number> pattern(kPattern);
  std::mt19937 random(1);
  std::normal_distribution<float> normal;
  for (Number& n : pattern) n = Number(normal(random));
  Buffer<char> out = device_buffer<char>(count);
  for (std::int64_t at = 0; at < count; at += std::int64_t{kPattern}) {
    const auto bytes =
        static_cast<std::size_t>(std::min<std::int64_t>(std::int64_t{kPattern}, count - at));
    check_cuda(cudaMemcpy(out.get() + at, pattern.data(), bytes, cudaMemcpyHostToDevice),
               "cudaMemcpy");
  }
  return out;
}

// Everything one product needs, alive as long as its kernel.
struct Fp8Gemm {
  LtHandle lt;
  Operation operation;
  Matrix a, b, c;
  cublasLtMatmulAlgo_t algorithm{};
  Buffer<char> in_a, in_b, out, workspace;
  Buffer<float> scale;
  bool wide = false;

  explicit Fp8Gemm(const costs::Gemm& g) : wide(g.pass == costs::GemmPass::weight_gradient) {
    const bool gradient = g.pass != costs::GemmPass::forward;
    in_a = random_fp8<__nv_fp8_e4m3>(g.k * g.n);
    in_b = gradient ? random_fp8<__nv_fp8_e5m2>(g.k * g.m) : random_fp8<__nv_fp8_e4m3>(g.k * g.m);
    const std::size_t bytes = static_cast<std::size_t>(g.m * g.n) * (wide ? 4 : 2);
    out = device_buffer<char>(static_cast<std::int64_t>(bytes));
    check_cuda(cudaMemset(out.get(), 0, bytes), "cudaMemset");
    workspace = device_buffer<char>(kFp8Workspace);
    scale = device_buffer<float>(1);
    const float one = 1;
    check_cuda(cudaMemcpy(scale.get(), &one, sizeof one, cudaMemcpyHostToDevice), "cudaMemcpy");

    check_lt(cublasLtCreate(&lt.value), "cublasLtCreate");
    check_lt(cublasLtMatmulDescCreate(&operation.value, CUBLAS_COMPUTE_32F, CUDA_R_32F),
             "cublasLtMatmulDescCreate");
    const cublasOperation_t transposed = CUBLAS_OP_T;
    const float* scales = scale.get();
    set(CUBLASLT_MATMUL_DESC_TRANSA, transposed);
    set(CUBLASLT_MATMUL_DESC_A_SCALE_POINTER, scales);
    set(CUBLASLT_MATMUL_DESC_B_SCALE_POINTER, scales);
    const auto rows = static_cast<std::uint64_t>(g.n), columns = static_cast<std::uint64_t>(g.m),
               inner = static_cast<std::uint64_t>(g.k);
    layout(a, CUDA_R_8F_E4M3, inner, rows);
    layout(b, gradient ? CUDA_R_8F_E5M2 : CUDA_R_8F_E4M3, inner, columns);
    layout(c, wide ? CUDA_R_32F : CUDA_R_16BF, rows, columns);
    choose();
  }

  template <class Value>
  void set(cublasLtMatmulDescAttributes_t attribute, const Value& value) {
    check_lt(cublasLtMatmulDescSetAttribute(operation.value, attribute, &value, sizeof value),
             "cublasLtMatmulDescSetAttribute");
  }
  static void layout(Matrix& matrix, cudaDataType type, std::uint64_t rows, std::uint64_t columns) {
    check_lt(cublasLtMatrixLayoutCreate(&matrix.value, type, rows, columns,
                                        static_cast<std::int64_t>(rows)),
             "cublasLtMatrixLayoutCreate");
  }
  void choose() {
    Preference preference;
    check_lt(cublasLtMatmulPreferenceCreate(&preference.value), "cublasLtMatmulPreferenceCreate");
    check_lt(cublasLtMatmulPreferenceSetAttribute(preference.value,
                                                  CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES,
                                                  &kFp8Workspace, sizeof kFp8Workspace),
             "cublasLtMatmulPreferenceSetAttribute");
    cublasLtMatmulHeuristicResult_t best{};
    int found = 0;
    check_lt(cublasLtMatmulAlgoGetHeuristic(lt.value, operation.value, a.value, b.value, c.value,
                                            c.value, preference.value, 1, &best, &found),
             "cublasLtMatmulAlgoGetHeuristic");
    if (found == 0) throw CannotMeasure("cuBLASLt has no such fp8 product");
    algorithm = best.algo;
  }

  void run(cudaStream_t stream) const {
    const float alpha = 1, beta = wide ? 1.0f : 0.0f;
    check_lt(cublasLtMatmul(lt.value, operation.value, &alpha, in_a.get(), a.value, in_b.get(),
                            b.value, &beta, out.get(), c.value, out.get(), c.value, &algorithm,
                            workspace.get(), kFp8Workspace, stream),
             "cublasLtMatmul");
  }
};

int capability() {
  int device = 0, major = 0, minor = 0;
  check_cuda(cudaGetDevice(&device), "cudaGetDevice");
  check_cuda(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device),
             "compute capability");
  check_cuda(cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, device),
             "compute capability");
  return 10 * major + minor;
}

}  // namespace

Kernel fp8_gemm_kernel(const costs::Gemm& g) {
  if (g.format != NumberFormat::fp8) throw CannotMeasure("only fp8 with a scale per tensor");
  if (capability() < kFirstWithFp8) throw CannotMeasure("this GPU has no fp8");
  if (g.m % kAlignment != 0 || g.n % kAlignment != 0 || g.k % kAlignment != 0)
    throw CannotMeasure("fp8 takes multiples of 16");
  return [gemm = std::make_shared<Fp8Gemm>(g)](cudaStream_t stream) { gemm->run(stream); };
}

}  // namespace mllmsim::calibrate::cuda
