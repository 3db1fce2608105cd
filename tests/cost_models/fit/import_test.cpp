// Importers on a few lines of each layout they know, and on garbage.
#include <gtest/gtest.h>

#include "cost_models/fit/import_kineto.hpp"
#include "cost_models/fit/import_nccl.hpp"
#include "cost_models/kernels/kernel_costs.hpp"
#include "sim/base/errors.hpp"

namespace mllmsim {
using namespace costs;
using namespace fit;
namespace {

const char* const kOld = R"(# nThread 1 nGpus 2 minBytes 1 maxBytes 64
# Using devices
#   Rank  0 Pid 1 on localhost device  0 [0x00] A100-SXM4-40GB
#   Rank  1 Pid 1 on localhost device  1 [0x00] A100-SXM4-40GB
#                                                     out-of-place                       in-place
#       size         count    type   redop     time   algbw   busbw  error     time   algbw   busbw  error
#        (B)    (elements)                     (us)  (GB/s)  (GB/s)            (us)  (GB/s)  (GB/s)
hostname:3442:3442 [0] NCCL INFO Launch mode Parallel
           0             0   float     sum    35.20    0.00    0.00    N/A    34.05    0.00    0.00    N/A
        1024           256   float     sum    36.07    0.03    0.05    N/A    35.77    0.03    0.05    N/A
        2048           512   float     sum      N/A    0.03    0.05    N/A    35.99    0.03    0.05    N/A
# Avg bus bandwidth    : 68.4048
)";

const char* const kNew = R"(# Collective test starting: all_gather_perf
# Using devices
#  Rank  0 Group  0 Pid 1 on nodeA device  0 [0000:1b:00] NVIDIA H100 80GB HBM3
#  Rank  1 Group  0 Pid 2 on nodeB device  0 [0000:1b:00] NVIDIA H100 80GB HBM3
#       size         count      type   redop    root     time   algbw   busbw  #wrong     time   algbw   busbw  #wrong
    33554400        419430    double    none      -1   721.94   46.48   41.83       0   687.61   48.80   43.92       0
# Collective test starting: alltoall_perf
# Using devices
#  Rank  0 Group  0 Pid 1 on nodeA device  0 [0000:1b:00] NVIDIA H100 80GB HBM3
#  Rank  1 Group  0 Pid 2 on nodeB device  0 [0000:1b:00] NVIDIA H100 80GB HBM3
#       size         count      type   redop    root     time   algbw   busbw  #wrong     time   algbw   busbw  #wrong
    33554400        419430    double    none      -1   792.60   42.33   38.10       0   762.45   44.01   39.61     N/A
# Collective test starting: sendrecv_perf
# Using devices
#  Rank  0 Group  0 Pid 1 on nodeA device  0 [0000:1b:00] NVIDIA H100 80GB HBM3
#  Rank  1 Group  0 Pid 2 on nodeB device  0 [0000:1b:00] NVIDIA H100 80GB HBM3
#       size         count      type   redop    root     time   algbw   busbw  #wrong     time   algbw   busbw  #wrong
    33554432       4194304    double     sum      -1  1400.87   23.95   23.95       0  1373.59   24.43   24.43     N/A
)";

const char* const kReport = R"({"version": 1, "args": ["./build/reduce_scatter_perf", "-J", "x"],
 "config": {"nthreads": 1, "ngpus": 4, "devices": [
   {"rank": 0, "hostname": "a", "device_info": "NVIDIA H100 80GB HBM3"}, {"rank": 4, "hostname": "b"}]},
 "results": [
   {"size": 4096, "type": "float", "out_of_place": {"time": 12.5, "bus_bw": 1}, "in_place": null},
   {"size": 8192, "type": "float", "out_of_place": {"time": "nan"}, "in_place": {"time": 13.5}}]})";

template <class Parse>
std::string problem_of(Parse read) {
  try {
    read();
  } catch (const UserError& e) {
    return e.what();
  }
  return "nothing";
}

TEST(ImportNccl, OldLayoutTakesTheOperationFromTheFileName) {
  const RawData raw = parse_nccl(kOld, "logs/a100_allreduce.log");
  ASSERT_EQ(raw.collectives.size(), 2u);  // nothing was sent in the first row
  EXPECT_EQ(raw.collectives[0].kernel, (Collective{CollectiveOp::all_reduce, {1024}, {2, 1, 1}}));
  EXPECT_DOUBLE_EQ(raw.collectives[0].time.value, 36.07e-6);
  EXPECT_DOUBLE_EQ(raw.collectives[1].time.value, 35.99e-6);  // in place, as the other is N/A
  EXPECT_EQ(raw.header.gpu, "A100-SXM4-40GB");
}

TEST(ImportNccl, NewLayoutHoldsSeveralTests) {
  const RawData raw = parse_nccl(kNew, "h100.log");
  ASSERT_EQ(raw.collectives.size(), 1u);
  EXPECT_EQ(raw.collectives[0].kernel,
            (Collective{CollectiveOp::all_gather, {33554400}, {2, 2, 1}}));
  ASSERT_EQ(raw.p2p.size(), 1u);
  EXPECT_FALSE(raw.p2p[0].kernel.same_node);
}

TEST(ImportNccl, JsonReportCountsTheGpusOfEveryProcess) {
  const RawData raw = parse_nccl(kReport, "x.json");
  ASSERT_EQ(raw.collectives.size(), 2u);
  EXPECT_EQ(raw.collectives[0].kernel,
            (Collective{CollectiveOp::reduce_scatter, {4096}, {8, 2, 1}}));
  EXPECT_DOUBLE_EQ(raw.collectives[1].time.value, 13.5e-6);
}

TEST(ImportNccl, GarbageIsTheUsersFault) {
  EXPECT_EQ(problem_of([] { parse_nccl("no log at all\n", "x.log"); }),
            "x.log: no nccl-tests result of a known operation");
  EXPECT_EQ(problem_of([] { parse_nccl(kOld, "x.log"); }),
            "x.log:10: neither the file nor its name says which operation this is: give --op");
  EXPECT_EQ(problem_of([] { parse_nccl("   1024  256 float sum 36.07\n", "allreduce.log"); }),
            "allreduce.log:1: a result before the line of column names");
  EXPECT_EQ(problem_of([] { parse_nccl("{\"config\": {}}", "allreduce.json"); }),
            "allreduce.json: config.nthreads: missing");
}

// Two products, the first linked by External id and split over two kernels, the second by
// correlation; an fp32 product; an all-reduce over two nodes seen twice; and things to skip.
const char* const kTrace =
    R"({"deviceProperties": [{"name": "NVIDIA A100-SXM4-80GB"}], "traceEvents": [
 {"ph":"M","name":"process_name"}, 17, {"cat":"cpu_op","name":"aten::mm"},
 {"cat":"cpu_op","name":"aten::mm","args":{"External id":1,"Input Dims":[[64,32],[32,16]],"Input type":["c10::BFloat16","c10::BFloat16"]}},
 {"cat":"cpu_op","name":"aten::addmm","args":{"External id":2,"Input Dims":[[8],[4,2],[2,8],[],[]]}},
 {"cat":"cpu_op","name":"aten::mm","args":{"External id":3,"Input Dims":[[64,32],[32,16]],"Input type":["float","float"]}},
 {"cat":"cuda_runtime","name":"cudaLaunchKernel","args":{"External id":2,"correlation":77}},
 {"cat":"kernel","name":"gemm","ts":100,"dur":10,"args":{"External id":1,"stream":7}},
 {"cat":"kernel","name":"splitKreduce","ts":112,"dur":3,"args":{"External id":1,"stream":7}},
 {"cat":"kernel","name":"gemm","ts":117,"dur":6,"args":{"correlation":77,"stream":7}},
 {"cat":"kernel","name":"gemm","ts":125,"dur":9,"args":{"External id":3,"stream":7}},
 {"cat":"kernel","name":"ncclDevKernel_AllReduce_Sum_bf16_RING_LL","ts":100,"dur":50,"args":{"stream":9,"Collective name":"allreduce","In msg nelems":1000,"Out msg nelems":1000,"Group size":4,"dtype":"BFloat16","Process Group Ranks":"[0, 1, 8, 9]"}},
 {"cat":"kernel","name":"ncclDevKernel_AllReduce_Sum_bf16_RING_LL","ts":200,"dur":40,"args":{"stream":9,"Collective name":"allreduce","In msg nelems":1000,"Out msg nelems":1000,"Group size":4,"dtype":"BFloat16","Process Group Ranks":"[0, 1, 8, 9]"}}
]})";

TEST(ImportKineto, ProductsAreLinkedToTheirKernels) {
  const RawData raw = parse_kineto(kTrace, "t.json");
  ASSERT_EQ(raw.gemm.size(), 2u);
  EXPECT_EQ(raw.gemm[0].kernel, (Gemm{4, 8, 2}));
  EXPECT_DOUBLE_EQ(raw.gemm[0].time.value, 6e-6);
  EXPECT_EQ(raw.gemm[1].kernel, (Gemm{64, 16, 32}));
  EXPECT_DOUBLE_EQ(raw.gemm[1].time.value, 13e-6);
  EXPECT_EQ(raw.header.gpu, "NVIDIA A100-SXM4-80GB");
}

TEST(ImportKineto, CollectivesAreTheShortestOfTheirKind) {
  const RawData raw = parse_kineto(kTrace, "t.json");
  ASSERT_EQ(raw.collectives.size(), 1u);
  EXPECT_EQ(raw.collectives[0].kernel, (Collective{CollectiveOp::all_reduce, {2000}, {4, 2, 1}}));
  EXPECT_DOUBLE_EQ(raw.collectives[0].time.value, 40e-6);
}

TEST(ImportKineto, GapsOfAStreamGiveTheLaunch) {
  const RawData raw = parse_kineto(kTrace, "t.json");  // gaps of 2, 2 and 2 us on stream 7
  ASSERT_EQ(raw.launch.size(), 1u);
  EXPECT_NEAR(raw.launch[0].value, 2e-6, 1e-12);
}

// A CPU: a product of 100 us, 20 us of Python, then inside autograd's backward a weight gradient of
// 50 us (its first matrix is a view, transposed) 10 us later, and the gradient of an embedding of
// 30 us, 12 of which it zeroes its result with.
const char* const kCpuTrace = R"({"traceEvents": [
 {"cat":"cpu_op","tid":1,"name":"aten::linear","ts":0,"dur":101,"args":{"External id":1,"Input Dims":[[64,32],[16,32]]}},
 {"cat":"cpu_op","tid":1,"name":"aten::mm","ts":1,"dur":100,"args":{"External id":2,"Input Dims":[[64,32],[32,16]],"Input Strides":[[32,1],[1,32]],"Input type":["float","float"]}},
 {"cat":"cpu_op","tid":1,"name":"aten::gelu","ts":121,"dur":40,"args":{"External id":3,"Input Dims":[[64,16],[]],"Input type":["float",""]}},
 {"cat":"cpu_op","tid":1,"name":"autograd::engine::evaluate_function: MmBackward0","ts":165,"dur":60,"args":{"External id":4}},
 {"cat":"cpu_op","tid":1,"name":"aten::mm","ts":171,"dur":50,"args":{"External id":5,"Input Dims":[[16,64],[64,32]],"Input Strides":[[1,16],[32,1]],"Input type":["float","float"]}},
 {"cat":"cpu_op","tid":1,"name":"aten::embedding_dense_backward","ts":221,"dur":30,"args":{"External id":6,"Input Dims":[[8,4],[8],[],[],[]],"Input type":["float","long int","Scalar","Scalar","Scalar"]}},
 {"cat":"cpu_op","tid":1,"name":"aten::zero_","ts":222,"dur":12,"args":{"External id":7,"Input Dims":[[100,4]],"Input type":["float"]}},
 {"cat":"cpu_op","tid":1,"name":"aten::_scaled_dot_product_flash_attention_for_cpu","ts":251,"dur":9,"args":{"External id":8,"Input Dims":[[2,6,128,64],[2,6,128,64],[2,6,128,64],[],[],[],[]],"Concrete Inputs":["","","","0.","True","",""],"Input type":["float","float","float"]}}
]})";

TEST(ImportKineto, OperatorsOfACpuTakeTheirOwnTimeAndWhatCameBefore) {
  const RawData raw = parse_kineto(kCpuTrace, "t.json");
  ASSERT_EQ(raw.gemm.size(), 2u);
  Gemm forward{64, 16, 32}, gradient{32, 16, 64, GemmPass::weight_gradient};
  forward.format = gradient.format = NumberFormat::fp32;
  EXPECT_EQ(raw.gemm[1].kernel, forward);
  EXPECT_NEAR(raw.gemm[1].time.value, 100e-6, 1e-12);
  EXPECT_EQ(raw.gemm[0].kernel, gradient);  // inputs x outputs, as layers have it
  EXPECT_NEAR(raw.gemm[0].time.value, 60e-6, 1e-12);
}

TEST(ImportKineto, BytesAreWhatLayersCount) {
  const RawData raw = parse_kineto(kCpuTrace, "t.json");
  ASSERT_EQ(raw.memory_bound.size(), 2u);  // by operation; a fill is none
  EXPECT_EQ(raw.memory_bound[0].kernel, (MemoryBound{MemoryOp::embedding, Bytes{8 * 4 * 12}}));
  EXPECT_NEAR(raw.memory_bound[0].time.value, 18e-6, 1e-12);  // without what it zeroes
  EXPECT_EQ(raw.memory_bound[1].kernel, (MemoryBound{MemoryOp::activation, Bytes{64 * 16 * 8}}));
  EXPECT_NEAR(raw.memory_bound[1].time.value, 60e-6, 1e-12);
}

TEST(ImportKineto, AttentionOfACpuIsCausalIfItSaysSo) {
  const RawData raw = parse_kineto(kCpuTrace, "t.json");
  ASSERT_EQ(raw.attention.size(), 1u);
  EXPECT_EQ(raw.attention[0].kernel, (Attention{{{128, 2}}, 6, 6, 64, true, false}));
}

// What the profiler takes for each operator: a product lies inside a linear layer, so 2 of them;
// the weight gradient has autograd's around it, the embedding's gradient itself alone (what it
// zeroes is an operator of its own).
TEST(ImportKineto, TheProfilersOwnTimeIsTakenOff) {
  const RawData raw = parse_kineto(kCpuTrace, "t.json", {8, 3});
  EXPECT_NEAR(raw.gemm[1].time.value, (100 - 2 * 3) * 1e-6, 1e-12);
  EXPECT_NEAR(raw.gemm[0].time.value, (60 - 2 * 3) * 1e-6, 1e-12);
  EXPECT_NEAR(raw.memory_bound[0].time.value, (18 - 3) * 1e-6, 1e-12);
  EXPECT_NEAR(parse_kineto(kCpuTrace, "t.json", {8, 500}).gemm[1].time.value, 20e-6, 1e-12);
}

TEST(ImportKineto, SumsThatAttentionClearsForItselfAreItsOwn) {
  const RawData raw = parse_kineto(R"({"traceEvents": [
 {"cat":"cpu_op","tid":1,"name":"aten::_scaled_dot_product_flash_attention_for_cpu","ts":0,"dur":90,"args":{"External id":1,"Input Dims":[[2,6,128,64],[2,6,128,64],[2,6,128,64],[],[],[],[]],"Concrete Inputs":["","","","0.","True","",""],"Input type":["float","float","float"]}},
 {"cat":"cpu_op","tid":1,"name":"aten::fill_","ts":5,"dur":20,"args":{"External id":2,"Input Dims":[[2,6,128,64],[]],"Input type":["float",""]}}
]})",
                                   "t.json");
  ASSERT_EQ(raw.attention.size(), 1u);
  EXPECT_NEAR(raw.attention[0].time.value, 90e-6, 1e-12);
}

TEST(ImportKineto, GarbageIsTheUsersFault) {
  EXPECT_EQ(problem_of([] { parse_kineto("[1, 2", "t.json"); }).substr(0, 11), "t.json:1:6:");
  EXPECT_EQ(problem_of([] { parse_kineto("{}", "t.json"); }),
            "t.json: traceEvents: expected a list of events");
  EXPECT_NE(problem_of([] { parse_kineto("[]", "t.json"); }).find("record_shapes"),
            std::string::npos);
}

}  // namespace
}  // namespace mllmsim
