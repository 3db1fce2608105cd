#include "results/trace/trace.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <map>
#include <string_view>
#include <tuple>

#include "results/run/version.hpp"
#include "sim/base/json_writer.hpp"

namespace mllmsim::results {
namespace {

constexpr std::array<std::string_view, 7> kStreams = {
    "compute", "tp", "pp_send_next", "pp_recv_prev", "pp_send_prev", "pp_recv_next", "dp"};
constexpr int kFirstStream = 7;  // PyTorch's own compute stream has this number
constexpr int kBubbleThread = 99;

// Exact: nanoseconds are thousandths.
std::string us(Time t) { return fmt::format("{}.{:03}", t.value / 1000, t.value % 1000); }

bool contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

struct Collective {
  const char* kernel;     // as NCCL calls it
  const char* name;       // as Kineto calls it
  double sent_of_buffer;  // what a rank sends round the ring, of the whole buffer and (n - 1) / n
};

const Collective* collective(std::string_view name) {
  static constexpr Collective kAllReduce{"AllReduce_Sum_bf16_RING_LL", "allreduce", 2};
  static constexpr Collective kAllGather{"AllGather_RING_LL", "_allgather_base", 1};
  static constexpr Collective kReduceScatter{"ReduceScatter_Sum_bf16_RING_LL",
                                             "_reduce_scatter_base", 1};
  if (contains(name, "all-reduce") || contains(name, "norm")) return &kAllReduce;
  if (contains(name, "all-gather")) return &kAllGather;
  if (contains(name, "reduce-scatter")) return &kReduceScatter;
  return nullptr;
}

class Writer {
 public:
  Writer(const RunResult& run, const charts::View& view)
      : run_(run), view_(view), placement_(charts::placement_of(run)) {}

  std::string text() {
    header();
    for (const charts::Lane& lane : view_.lanes) {
      metadata(lane);
      for (const SpanRow* s : lane.spans) span(lane, *s);
      memory(lane);
    }
    arrows();
    return out_ + "\n]}\n";
  }

 private:
  void header() {
    const std::int64_t rank = view_.lanes.front().first_rank;
    out_ = fmt::format(
        "{{\"schemaVersion\": 1,\n\"deviceProperties\": [{{\"id\": 0, \"name\": {}, "
        "\"totalGlobalMem\": {}}}],\n"
        "\"distributedInfo\": {{\"backend\": \"nccl\", \"rank\": {}, \"world_size\": {}, "
        "\"pg_count\": 3, \"pg_config\": [{{\"pg_name\": \"tp\", \"pg_size\": {}}}, "
        "{{\"pg_name\": \"pp\", \"pg_size\": {}}}, {{\"pg_name\": \"dp\", \"pg_size\": {}}}]}},\n"
        "\"simulation\": {{\"program\": \"mllmsim {}\", \"run\": {}, \"strategy\": {}, \"step\": "
        "{}, \"scenario_hash\": {}}},\n"
        "\"displayTimeUnit\": \"ms\",\n\"baseTimeNanoseconds\": 0,\n\"traceEvents\": [",
        json_text(run_.cluster), run_.gpu_memory.value, rank, run_.gpus, run_.tp, run_.pp, run_.dp,
        version(), json_text(run_.name), json_text(run_.strategy), view_.step,
        json_text(run_.scenario_hash));
  }

  // {"ph": PH, "pid": rank, "tid": ..., "ts": ..., ...rest}
  void event(char phase, std::int64_t rank, int thread, Time at, const std::string& rest) {
    fmt::format_to(std::back_inserter(out_),
                   "{}\n{{\"ph\": \"{}\", \"pid\": {}, \"tid\": {}, \"ts\": {}, {}}}",
                   events_++ ? "," : "", phase, rank, thread, us(at), rest);
  }

  void named(const char* what, std::int64_t rank, int thread, const std::string& arguments) {
    event('M', rank, thread, Time{},
          fmt::format("\"name\": \"{}\", \"args\": {{{}}}", what, arguments));
  }

  void metadata(const charts::Lane& lane) {
    const std::int64_t rank = lane.first_rank;
    named("process_name", rank, 0,
          fmt::format("\"name\": {}", json_text(fmt::format("rank {}: {}", rank, lane.label))));
    named("process_labels", rank, 0,
          fmt::format("\"labels\": \"replica {}, ranks {}-{}\"", lane.replica, rank,
                      rank + run_.tp - 1));
    named("process_sort_index", rank, 0, fmt::format("\"sort_index\": {}", rank));
    threads_.clear();
  }

  int thread(const charts::Lane& lane, std::string_view stream) {
    const auto [at, added] = threads_.try_emplace(std::string(stream), 0);
    if (!added) return at->second;
    const auto known = std::find(kStreams.begin(), kStreams.end(), stream);
    int id = kFirstStream + static_cast<int>(known - kStreams.begin());
    if (stream == "bubbles")
      id = kBubbleThread;
    else if (known == kStreams.end())
      id += static_cast<int>(threads_.size());  // several we do not know
    at->second = id;
    const std::string name =
        id == kBubbleThread ? "bubbles" : fmt::format("stream {} {}", id, stream);
    named("thread_name", lane.first_rank, id, "\"name\": " + json_text(name));
    named("thread_sort_index", lane.first_rank, id, fmt::format("\"sort_index\": {}", id));
    return id;
  }

  void span(const charts::Lane& lane, const SpanRow& s) {
    const std::int64_t rank = lane.first_rank;
    const bool bubble = s.kind == "bubble";
    const int id = thread(lane, bubble ? "bubbles" : s.stream);
    std::string name = s.name, arguments;
    if (bubble) {
      name = "bubble " + s.name;
      arguments = fmt::format("\"kind\": {}", json_text(s.name));
    } else {
      arguments =
          fmt::format("\"device\": {}, \"stream\": {}, \"kind\": {}", rank, id, json_text(s.kind));
      if (s.micro_batch >= 0) arguments += fmt::format(", \"micro_batch\": {}", s.micro_batch);
      if (s.chunk >= 0) arguments += fmt::format(", \"chunk\": {}", s.chunk);
      if (s.stream != "compute")
        name = communication(lane, s, arguments);
      else if (run_.granularity != "kernel" && s.name != s.kind)
        name = s.kind + " " + s.name;
    }
    event('X', rank, id, s.start,
          fmt::format("\"dur\": {}, \"cat\": \"{}\", \"name\": {}, \"args\": {{{}}}",
                      us(s.end - s.start), bubble ? "gpu_user_annotation" : "kernel",
                      json_text(name), arguments));
    if (!bubble) return;
    for (const int on : {1, 0})
      event('C', rank, 0, on ? s.start : s.end,
            fmt::format("\"name\": \"bubbles\", \"args\": {{{}: {}}}", json_text(s.name), on));
  }

  // Kineto's fields of a collective, so that tools sum them up and `calibrate import` learns from
  // it.
  std::string communication(const charts::Lane& lane, const SpanRow& s, std::string& arguments) {
    const auto add = [&](const char* key, const auto& value) {
      arguments += fmt::format(", \"{}\": {}", key, value);
    };
    if (s.stream.starts_with("pp")) {
      const bool sends = contains(s.stream, "send");
      add("Collective name", sends ? "\"send\"" : "\"recv\"");
      add(sends ? "In msg nelems" : "Out msg nelems", s.bytes.value / 2);
      add("dtype", "\"BFloat16\"");
      add("Process Group Name", "\"pp\"");
      return "ncclDevKernel_SendRecv " + s.stream;
    }
    const Collective* c = collective(s.name);
    if (!c) return s.name;
    const bool tp = s.stream == "tp";
    const int n = tp ? run_.tp : run_.dp;
    add("Collective name", fmt::format("\"{}\"", c->name));
    add("Group size", n);
    add("Process Group Name", tp ? "\"tp\"" : "\"dp\"");
    std::string ranks;
    for (int i = 0; i < n; ++i)
      ranks += (i ? ", " : "") +
               std::to_string(tp ? lane.first_rank + i : placement_.rank(0, i, lane.stage));
    if (s.bytes.value > 0 && n > 1) {
      const double whole = static_cast<double>(s.bytes.value) / c->sent_of_buffer * n / (n - 1) / 2;
      const auto elements = static_cast<std::int64_t>(whole + 0.5);
      const bool gather = contains(s.name, "gather"), scatter = contains(s.name, "scatter");
      add("In msg nelems", gather ? elements / n : elements);
      add("Out msg nelems", scatter ? elements / n : elements);
      add("dtype", "\"BFloat16\"");
      add("Process Group Ranks", "\"[" + ranks + "]\"");
    }
    return fmt::format("ncclDevKernel_{} {}", c->kernel, s.name);
  }

  void memory(const charts::Lane& lane) {
    for (const MemoryRow& m : run_.memory)
      if (m.step == view_.step && m.replica == lane.replica && m.stage == lane.stage)
        event(
            'C', lane.first_rank, 0, m.time,
            fmt::format("\"name\": \"memory\", \"args\": {{\"bytes in use\": {}}}", m.bytes.value));
  }

  // A send and its receive start and end together; the receiver is the next or the previous stage,
  // round the ring with virtual stages.
  void arrows() {
    using Key = std::tuple<int, int, bool, int, std::int64_t, std::int64_t>;
    std::map<Key, const charts::Lane*> receivers;
    const auto key = [](int replica, int stage, bool next, const SpanRow& s) {
      return Key{replica, stage, next, s.micro_batch, s.start.value, s.end.value};
    };
    for (const charts::Lane& lane : view_.lanes)
      for (const SpanRow* s : lane.spans)
        if (s->stream.starts_with("pp_recv"))
          receivers[key(lane.replica, lane.stage, s->stream == "pp_recv_prev", *s)] = &lane;
    std::int64_t id = 0;
    for (const charts::Lane& lane : view_.lanes)
      for (const SpanRow* s : lane.spans) {
        if (!s->stream.starts_with("pp_send")) continue;
        const bool next = s->stream == "pp_send_next";
        const int to = (lane.stage + (next ? 1 : run_.pp - 1)) % run_.pp;
        const auto at = receivers.find(key(lane.replica, to, next, *s));
        if (at == receivers.end()) continue;  // not shown
        ++id;
        const auto rest = [&](const char* more) {
          return fmt::format("\"id\": {}, \"cat\": \"p2p\", \"name\": {}{}", id, json_text(s->name),
                             more);
        };
        const auto number = [&](const char* stream) {
          return kFirstStream +
                 static_cast<int>(std::find(kStreams.begin(), kStreams.end(), stream) -
                                  kStreams.begin());
        };
        event('s', lane.first_rank, number(next ? "pp_send_next" : "pp_send_prev"), s->start,
              rest(""));
        event('f', at->second->first_rank, number(next ? "pp_recv_prev" : "pp_recv_next"),
              std::max(s->start, s->end - Time{1}), rest(", \"bp\": \"e\""));
      }
  }

  const RunResult& run_;
  const charts::View& view_;
  const Parallelism placement_;
  std::string out_;
  std::int64_t events_ = 0;
  std::map<std::string, int> threads_;  // of the current lane
};

}  // namespace

std::string to_trace(const RunResult& run, const charts::Choice& choice) {
  const charts::View view = charts::view_of(run, choice);
  return Writer(run, view).text();
}

}  // namespace mllmsim::results
