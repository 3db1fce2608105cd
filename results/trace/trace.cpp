#include "results/trace/trace.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <string_view>

#include "results/run/version.hpp"
#include "results/text/words.hpp"
#include "results/trace/arrows.hpp"
#include "results/trace/kineto.hpp"
#include "sim/base/json_writer.hpp"

namespace mllmsim::results {
namespace {

constexpr int kFirstStream = 7;  // PyTorch's own compute stream has this number
constexpr int kBubbleThread = 99;

// Of one number on every rank.
int thread_of(StreamKind stream) { return kFirstStream + static_cast<int>(stream); }
int thread_of(const SpanRow& s) {
  return s.kind == SpanKind::bubble ? kBubbleThread : thread_of(s.stream);
}

// Exact: nanoseconds are thousandths.
std::string us(Time t) { return fmt::format("{}.{:03}", t.value / 1000, t.value % 1000); }

class Writer {
 public:
  Writer(const RunResult& run, const charts::View& view)
      : run_(run), view_(view), placement_(charts::placement_of(run)) {}

  std::string text() {
    header();
    for (const charts::Lane& lane : view_.lanes) {
      metadata(lane);
      threads(lane);
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
  }

  // Those that something happens on.
  void threads(const charts::Lane& lane) {
    std::map<int, std::string> names;
    for (const SpanRow* s : lane.spans) {
      const int id = thread_of(*s);
      names.try_emplace(id, s->kind == SpanKind::bubble
                                ? "idle"
                                : fmt::format("stream {} {}", id, words(s->stream)));
    }
    for (const auto& [id, name] : names) {
      named("thread_name", lane.first_rank, id, "\"name\": " + json_text(name));
      named("thread_sort_index", lane.first_rank, id, fmt::format("\"sort_index\": {}", id));
    }
  }

  void complete(const charts::Lane& lane, const SpanRow& s, const char* category,
                std::string_view name, const std::string& arguments) {
    event('X', lane.first_rank, thread_of(s), s.start,
          fmt::format("\"dur\": {}, \"cat\": \"{}\", \"name\": {}, \"args\": {{{}}}",
                      us(s.end - s.start), category, json_text(name), arguments));
  }

  void bubble(const charts::Lane& lane, const SpanRow& s) {
    const std::string_view cause = words(s.bubble);
    complete(lane, s, "gpu_user_annotation", fmt::format("idle: {}", cause),
             "\"kind\": " + json_text(name_of(s.bubble)));
    for (const int on : {1, 0})
      event('C', lane.first_rank, 0, on ? s.start : s.end,
            fmt::format("\"name\": \"bubbles\", \"args\": {{{}: {}}}", json_text(cause), on));
  }

  void span(const charts::Lane& lane, const SpanRow& s) {
    if (s.kind == SpanKind::bubble) return bubble(lane, s);
    std::string arguments = fmt::format("\"device\": {}, \"stream\": {}, \"kind\": {}",
                                        lane.first_rank, thread_of(s), json_text(name_of(s.kind)));
    if (s.micro_batch >= 0) arguments += fmt::format(", \"micro_batch\": {}", s.micro_batch);
    if (s.chunk >= 0) arguments += fmt::format(", \"chunk\": {}", s.chunk);
    std::string name = s.name;
    if (s.stream != StreamKind::compute) {
      KinetoKernel kernel = kineto_kernel(s, lane, placement_);
      name = std::move(kernel.name);
      arguments += kernel.fields;
    } else if (run_.granularity != Granularity::kernel && s.name != name_of(s.kind)) {
      name = fmt::format("{} {}", name_of(s.kind), s.name);
    }
    complete(lane, s, "kernel", name, arguments);
  }

  void memory(const charts::Lane& lane) {
    for (const MemoryRow& m : run_.memory)
      if (m.step == view_.step && m.replica == lane.replica && m.stage == lane.stage)
        event(
            'C', lane.first_rank, 0, m.time,
            fmt::format("\"name\": \"memory\", \"args\": {{\"bytes in use\": {}}}", m.bytes.value));
  }

  void arrows() {
    std::int64_t id = 0;
    for (const Arrow& a : arrows_of(view_, run_.pp)) {
      const std::string flow =
          fmt::format("\"id\": {}, \"cat\": \"p2p\", \"name\": {}", ++id, json_text(a.sent->name));
      event('s', a.from->first_rank, thread_of(*a.sent), a.sent->start, flow);
      // Within the receive, so that viewers attach it.
      event('f', a.to->first_rank, thread_of(*a.received),
            std::max(a.received->start, a.received->end - Time{1}), flow + ", \"bp\": \"e\"");
    }
  }

  const RunResult& run_;
  const charts::View& view_;
  const Parallelism placement_;
  std::string out_;
  std::int64_t events_ = 0;
};

}  // namespace

std::string to_trace(const RunResult& run, const charts::Choice& choice) {
  const charts::View view = charts::view_of(run, choice);
  return Writer(run, view).text();
}

}  // namespace mllmsim::results
