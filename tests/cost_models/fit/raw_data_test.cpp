#include "cost_models/fit/raw_data.hpp"

#include <gtest/gtest.h>

#include "sim/base/errors.hpp"

namespace mllmsim {
using namespace costs;
using namespace fit;
namespace {

const char* const kLines = R"({"header": {"gpu": "A100-SXM4-80GB", "source": "node 7", "uuid": 3}}
{"part":"gemm","m":1,"n":2,"k":3,"pass":"weight_gradient","us":4.5,"spread":0.1}
{"part":"gemm","m":1,"n":2,"k":3,"pass":"forward","mode":"sustained","us":4.5}
{"part":"attention","length":9,"batch":2,"heads":4,"kv_heads":2,"head_dim":64,"causal":true,"backward":false,"us":7}
{"part":"memory_bound","op":"norm","bytes":100,"rows":5,"row_length":10,"us":3}

{"part":"collective","op":"all_gather","ranks":16,"nodes":2,"bytes":1024,"us":33}
{"part":"p2p","same_node":true,"bytes":8,"us":9}
{"part":"launch","us":2.5}
{"part":"copy","kind":"h2d","bytes":8,"us":1}
{"part":"overlap","slowdown":1.1}
)";

std::string problem(const std::string& text, bool csv = false) {
  try {
    csv ? parse_raw_csv(text, "t.csv") : parse_raw(text, "t.jsonl");
  } catch (const UserError& e) {
    return e.what();
  }
  return "nothing";
}

TEST(RawData, ReadsEveryPart) {
  const RawData raw = parse_raw(kLines, "t.jsonl");
  EXPECT_EQ(raw.size(), 8u);
  EXPECT_EQ(raw.header.gpu, "A100-SXM4-80GB");
  EXPECT_EQ(raw.gemm[0].kernel.pass, GemmPass::weight_gradient);
  EXPECT_TRUE(raw.gemm[1].sustained);
  EXPECT_EQ(raw.attention[0].kernel.sequences.front(), (SequenceGroup{9, 2}));
  EXPECT_EQ(raw.collectives[0].kernel.group.ranks_per_node(), 8);
  EXPECT_EQ(raw.sources.at("gemm").front(), "node 7");
}

TEST(RawData, WritingAndReadingAgainChangesNothing) {
  const std::string once = to_json_lines(parse_raw(kLines, "t.jsonl"));
  EXPECT_EQ(to_json_lines(parse_raw(once, "t.jsonl")), once);
}

TEST(RawData, ProblemsNameTheLine) {
  EXPECT_EQ(problem("{\"part\":\"gemm\",\"m\":1}"), "t.jsonl:1: n: missing");
  EXPECT_EQ(problem("\n{\"part\":\"gemma\"}").substr(0, 16), "t.jsonl:2: part:");
  EXPECT_EQ(problem("{\"part\":\"launch\",\"us\":-1}"), "t.jsonl:1: us: expected a number above 0");
  EXPECT_EQ(problem("{\"part\":\"launch\"").substr(0, 13), "t.jsonl:1:17:");
}

TEST(RawCsv, ColumnsTellThePart) {
  const RawData gemm = parse_raw_csv("# source: somewhere\nm,n,k,us\n16,32,64,2.5\n", "t.csv");
  EXPECT_EQ(gemm.gemm.at(0).kernel, (Gemm{16, 32, 64}));
  EXPECT_EQ(gemm.sources.at("gemm").front(), "somewhere");
  const RawData nccl = parse_raw_csv(
      "op,dtype,num_gpus,bytes,us\nall_gather,half,4,512,9\nalltoall,half,4,512,9\n", "t.csv");
  ASSERT_EQ(nccl.collectives.size(), 2u);
  EXPECT_EQ(nccl.collectives[1].kernel.op, CollectiveOp::all_to_all);
}

TEST(RawCsv, KeyValueHeadsMarkCausalServingAttention) {
  const RawData served = parse_raw_csv(
      "batch_size,isl,num_heads,num_key_value_heads,head_dim,window_size,us\n"
      "1,16,8,2,128,0,9\n1,16,8,2,128,64,9\n",
      "t.csv");
  ASSERT_EQ(served.attention.size(), 1u);  // the sliding window is skipped
  EXPECT_TRUE(served.attention[0].serving && served.attention[0].kernel.causal);
  const RawData vit = parse_raw_csv("batch_size,isl,num_heads,head_dim,us\n1,16,8,80,9\n", "t.csv");
  EXPECT_FALSE(vit.attention.at(0).serving || vit.attention[0].kernel.causal);
}

TEST(RawCsv, ProblemsNameTheLine) {
  EXPECT_EQ(problem("m,n,k,us\n1,2,3\n", true), "t.csv:2: expected 4 cells, found 3");
  EXPECT_EQ(problem("m,n,k,us\n1,2,x,4\n", true), "t.csv:2: k: expected a number, found \"x\"");
  EXPECT_EQ(problem("a,us\n1,2\n", true), "t.csv:2: these columns are not a known table");
  EXPECT_EQ(problem("# nothing\n", true), "t.csv: expected a line of column names");
}

}  // namespace
}  // namespace mllmsim
