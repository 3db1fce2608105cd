// Traces of runs made by hand: which events there are, and where.
#include "results/trace/trace.hpp"

#include <gtest/gtest.h>

#include <boost/json.hpp>

#include "cost_models/kernels/kernel_costs.hpp"
#include "results/text/words.hpp"
#include "results/trace/arrows.hpp"
#include "results/trace/kineto.hpp"

namespace mllmsim {
using namespace results;
namespace {

namespace json = boost::json;

SpanRow span(int stage, StreamKind stream, SpanKind kind, const char* name, int micro_batch,
             std::int64_t start, std::int64_t end, std::int64_t bytes = 0) {
  SpanRow s;
  s.stage = stage;
  s.stream = stream;
  s.kind = kind;
  s.name = name;
  s.micro_batch = micro_batch;
  s.start = Time{start}, s.end = Time{end};
  s.bytes = Bytes{bytes};
  return s;
}

SpanRow idle(int stage, BubbleKind kind, std::int64_t start, std::int64_t end) {
  SpanRow s = span(stage, StreamKind::compute, SpanKind::bubble, "", -1, start, end);
  s.bubble = kind;
  return s;
}

void add_transfer(RunResult& run, int from, int to, StreamKind sending, StreamKind receiving,
                  int micro_batch, std::int64_t start, std::int64_t end, std::int64_t bytes) {
  run.spans.push_back(
      span(from, sending, SpanKind::pp_send, "activations", micro_batch, start, end, bytes));
  run.spans.push_back(
      span(to, receiving, SpanKind::pp_recv, "activations", micro_batch, start, end, bytes));
}

// Stages of tp 2: ranks 0 and 1 are stage 0, ranks 2 and 3 stage 1, and so on.
RunResult of_stages(int stages) {
  RunResult run;
  run.name = "made by hand";
  run.tp = 2, run.pp = stages, run.dp = 1, run.gpus = 2 * stages;
  run.granularity = Granularity::stage;
  return run;
}

json::array events_of(const RunResult& run) {
  return json::parse(to_trace(run, {})).at("traceEvents").as_array();
}

// Those of a phase, as texts.
std::vector<std::string> events_of(const RunResult& run, std::string_view phase) {
  std::vector<std::string> out;
  for (const json::value& event : events_of(run))
    if (event.at("ph").as_string() == phase) out.push_back(json::serialize(event));
  return out;
}

// Stage 0 computes for 2 us and sends for 1 us; stage 1 waits for it.
//   stage 0   F F .
//   transfer      ->
//   stage 1   . . .
RunResult one_transfer() {
  RunResult run = of_stages(2);
  run.spans = {span(0, StreamKind::compute, SpanKind::forward, "llm", 0, 0, 2000),
               idle(1, BubbleKind::pp_warmup, 0, 3000)};
  add_transfer(run, 0, 1, StreamKind::pp_send_next, StreamKind::pp_recv_prev, 0, 2000, 3000, 64);
  return run;
}

TEST(Trace, ASpanIsAnEventOnTheThreadOfItsStream) {
  EXPECT_EQ(
      events_of(one_transfer(), "X"),
      (std::vector<std::string>{
          R"({"ph":"X","pid":0,"tid":7,"ts":0E0,"dur":2E0,"cat":"kernel","name":"forward llm",)"
          R"("args":{"device":0,"stream":7,"kind":"forward","micro_batch":0}})",
          R"({"ph":"X","pid":0,"tid":9,"ts":2E0,"dur":1E0,"cat":"kernel",)"
          R"("name":"ncclDevKernel_SendRecv pp_send_next","args":{"device":0,"stream":9,)"
          R"("kind":"pp_send","micro_batch":0,"Collective name":"send","In msg nelems":32,)"
          R"("dtype":"BFloat16","Process Group Name":"pp"}})",
          R"({"ph":"X","pid":2,"tid":99,"ts":0E0,"dur":3E0,"cat":"gpu_user_annotation",)"
          R"("name":"idle: pipeline warm-up","args":{"kind":"pp_warmup"}})",
          R"({"ph":"X","pid":2,"tid":10,"ts":2E0,"dur":1E0,"cat":"kernel",)"
          R"("name":"ncclDevKernel_SendRecv pp_recv_prev","args":{"device":2,"stream":10,)"
          R"("kind":"pp_recv","micro_batch":0,"Collective name":"recv","Out msg nelems":32,)"
          R"("dtype":"BFloat16","Process Group Name":"pp"}})"}));
}

// From the start of the send to the last nanosecond of the receive.
TEST(Trace, AnArrowLeadsFromASendToItsReceive) {
  EXPECT_EQ(events_of(one_transfer(), "s"),
            (std::vector<std::string>{R"({"ph":"s","pid":0,"tid":9,"ts":2E0,"id":1,"cat":"p2p",)"
                                      R"("name":"activations"})"}));
  EXPECT_EQ(events_of(one_transfer(), "f"),
            (std::vector<std::string>{R"({"ph":"f","pid":2,"tid":10,"ts":2.999E0,"id":1,)"
                                      R"("cat":"p2p","name":"activations","bp":"e"})"}));
}

TEST(Trace, ABubbleIsCountedWhileItLasts) {
  EXPECT_EQ(events_of(one_transfer(), "C"),
            (std::vector<std::string>{R"({"ph":"C","pid":2,"tid":0,"ts":0E0,"name":"bubbles",)"
                                      R"("args":{"pipeline warm-up":1}})",
                                      R"({"ph":"C","pid":2,"tid":0,"ts":3E0,"name":"bubbles",)"
                                      R"("args":{"pipeline warm-up":0}})"}));
}

// Every stream on every stage, in opposite orders: thread 7 + the stream's number all the same.
TEST(Trace, AStreamHasOneNumberAndNameOnEveryRank) {
  RunResult run = of_stages(2);
  for (int s = 0; s < static_cast<int>(kStreamKinds); ++s) {
    const auto kind = static_cast<StreamKind>(s);
    run.spans.push_back(span(0, kind, SpanKind::sync, "", 0, s, s + 1));
    run.spans.push_back(span(1, kind, SpanKind::sync, "", 0, 100 - s, 101 - s));
  }
  std::size_t named = 0;
  for (const json::value& e : events_of(run)) {
    if (e.at("name").as_string() != "thread_name") continue;
    ++named;
    const std::int64_t thread = e.at("tid").as_int64();
    EXPECT_EQ(std::string(e.at("args").at("name").as_string()),
              "stream " + std::to_string(thread) + " " +
                  std::string(words(static_cast<StreamKind>(thread - 7))));
  }
  EXPECT_EQ(named, 2 * kStreamKinds);
}

// --- arrows ---

std::vector<std::pair<int, int>> stages_joined(const RunResult& run) {
  std::vector<std::pair<int, int>> out;
  const charts::View view = charts::view_of(run, {});
  for (const Arrow& a : arrows_of(view, run.pp)) out.emplace_back(a.from->stage, a.to->stage);
  return out;
}

// Two encoders, on stages 1 and 2, finish together and both send to the LLM's first stage; the
// micro-batches tell them apart. Gradients go back.
TEST(Arrows, EncodersSendToAnyStage) {
  RunResult run = of_stages(3);
  const auto forward = [&](int from, int micro_batch) {
    add_transfer(run, from, 0, StreamKind::encoder_send_next, StreamKind::encoder_recv_prev,
                 micro_batch, 10, 20, 64);
  };
  forward(1, 0);
  forward(2, 1);
  add_transfer(run, 0, 2, StreamKind::encoder_send_prev, StreamKind::encoder_recv_next, 1, 30, 40,
               64);
  EXPECT_EQ(stages_joined(run), (std::vector<std::pair<int, int>>{{0, 2}, {1, 0}, {2, 0}}));
}

// With virtual stages the last stage sends to the first; with two stages both are neighbours on
// both sides, and only the stream says which way a transfer goes.
TEST(Arrows, PipelinesAreRings) {
  RunResult run = of_stages(2);
  const auto next = [&](int from, int to) {
    add_transfer(run, from, to, StreamKind::pp_send_next, StreamKind::pp_recv_prev, 0, 0, 5, 64);
  };
  next(1, 0);
  next(0, 1);
  EXPECT_EQ(stages_joined(run), (std::vector<std::pair<int, int>>{{0, 1}, {1, 0}}));
}

TEST(Arrows, AReceiverThatIsNotShownHasNone) {
  const RunResult run = one_transfer();
  const charts::View view = charts::view_of(run, {{}, {{0, 1}}, {}});
  EXPECT_TRUE(arrows_of(view, run.pp).empty());
}

// --- Kineto's fields ---

// A ring of 4 sends 2 * 3/4 of an all-reduced buffer: 96 bytes of 64, which are 32 elements.
TEST(Kineto, AnAllReduceSaysHowLargeItsBufferIs) {
  Parallelism p;
  p.data_parallel_size = 4;
  const SpanRow s =
      span(0, StreamKind::dp, SpanKind::dp_reduce_scatter, "dp all-reduce", -1, 0, 1, 96);
  EXPECT_EQ(kineto_kernel(s, {}, p).fields,
            R"(, "Collective name": "allreduce", "Group size": 4, "Process Group Name": "dp")"
            R"(, "In msg nelems": 32, "Out msg nelems": 32, "dtype": "BFloat16")"
            R"(, "Process Group Ranks": "[0, 1, 2, 3]")");
}

// A ring of 4 sends 3/4 of a gathered buffer; each rank puts in a quarter.
TEST(Kineto, AnAllGatherPutsInAPart) {
  Parallelism p;
  p.data_parallel_size = 4;
  const SpanRow s = span(0, StreamKind::dp, SpanKind::dp_all_gather, "dp all-gather", -1, 0, 1, 48);
  const KinetoKernel kernel = kineto_kernel(s, {}, p);
  EXPECT_EQ(kernel.name, "ncclDevKernel_AllGather_RING_LL dp all-gather");
  EXPECT_NE(kernel.fields.find(R"("In msg nelems": 8, "Out msg nelems": 32)"), std::string::npos);
}

}  // namespace
}  // namespace mllmsim
