#include "results/trace/trace.hpp"

#include <fmt/format.h>

#include <algorithm>
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

constexpr std::size_t kPiece = 1 << 20;

class Writer {
 public:
  Writer(const RunResult& run, const charts::View& view,
         const std::function<void(std::string_view)>& to)
      : run_(run), view_(view), placement_(charts::placement_of(run)), to_(to) {}

  void write() {
    header();
    for (const charts::Lane& lane : view_.lanes) {
      metadata(lane);
      threads(lane);
      for (const SpanRow* s : lane.spans) span(lane, *s);
      memory(lane);
    }
    arrows();
    out_ += "\n]}\n";
    to_(out_);
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

  void add(std::string_view text) { out_ += text; }
  void add(std::int64_t number) {
    const fmt::format_int text(number);
    out_.append(text.data(), text.size());
  }
  // In microseconds, exact: nanoseconds are thousandths.
  void add(Time t) {
    add(t.value / 1000);
    const auto rest = static_cast<int>(t.value % 1000);
    out_ += '.';
    for (const int digit : {rest / 100, rest / 10 % 10, rest % 10})
      out_ += static_cast<char>('0' + digit);
  }
  // A text in JSON. A run has few, so they are remembered.
  const std::string& quoted(std::string_view text) {
    const auto known = quoted_.find(text);
    if (known != quoted_.end()) return known->second;
    return quoted_.emplace(text, json_text(text)).first->second;
  }

  // {"ph": PH, "pid": rank, "tid": ..., "ts": ..., then what end_event() closes
  void begin_event(char phase, std::int64_t rank, int thread, Time at) {
    if (out_.size() > kPiece) {
      to_(out_);
      out_.clear();
    }
    add(events_++ ? ",\n{\"ph\": \"" : "\n{\"ph\": \"");
    out_ += phase;
    add("\", \"pid\": ");
    add(rank);
    add(", \"tid\": ");
    add(std::int64_t{thread});
    add(", \"ts\": ");
    add(at);
    add(", ");
  }
  void end_event() { out_ += '}'; }
  void event(char phase, std::int64_t rank, int thread, Time at, std::string_view rest) {
    begin_event(phase, rank, thread, at);
    add(rest);
    end_event();
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

  // Up to the arguments, which end_complete() closes.
  void begin_complete(const charts::Lane& lane, const SpanRow& s, const char* category,
                      std::string_view name) {
    begin_event('X', lane.first_rank, thread_of(s), s.start);
    add("\"dur\": ");
    add(s.end - s.start);
    add(", \"cat\": \"");
    add(category);
    add("\", \"name\": ");
    add(quoted(name));
    add(", \"args\": {");
  }
  void end_complete() {
    out_ += '}';
    end_event();
  }

  void bubble(const charts::Lane& lane, const SpanRow& s) {
    const std::string_view cause = words(s.bubble);
    name_.assign("idle: ").append(cause);
    begin_complete(lane, s, "gpu_user_annotation", name_);
    add("\"kind\": ");
    add(quoted(name_of(s.bubble)));
    end_complete();
    for (const int on : {1, 0}) {
      begin_event('C', lane.first_rank, 0, on ? s.start : s.end);
      add("\"name\": \"bubbles\", \"args\": {");
      add(quoted(cause));
      add(on ? ": 1}" : ": 0}");
      end_event();
    }
  }

  void span(const charts::Lane& lane, const SpanRow& s) {
    if (s.kind == SpanKind::bubble) return bubble(lane, s);
    KinetoKernel kernel;
    std::string_view name = s.name;
    if (s.stream != StreamKind::compute) {
      kernel = kineto_kernel(s, lane, placement_);
      name = kernel.name;
    } else if (run_.granularity != Granularity::kernel && s.name != name_of(s.kind)) {
      name = name_.assign(name_of(s.kind)).append(" ").append(s.name);
    }
    begin_complete(lane, s, "kernel", name);
    add("\"device\": ");
    add(lane.first_rank);
    add(", \"stream\": ");
    add(std::int64_t{thread_of(s)});
    add(", \"kind\": ");
    add(quoted(name_of(s.kind)));
    if (s.micro_batch >= 0) {
      add(", \"micro_batch\": ");
      add(std::int64_t{s.micro_batch});
    }
    if (s.chunk >= 0) {
      add(", \"chunk\": ");
      add(std::int64_t{s.chunk});
    }
    add(kernel.fields);
    end_complete();
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
  const std::function<void(std::string_view)>& to_;
  std::string out_;   // not yet given away
  std::string name_;  // of the span being written
  std::map<std::string, std::string, std::less<>> quoted_;
  std::int64_t events_ = 0;
};

}  // namespace

void write_trace(const RunResult& run, const charts::Choice& choice,
                 const std::function<void(std::string_view)>& to) {
  const charts::View view = charts::view_of(run, choice);
  Writer(run, view, to).write();
}

std::string to_trace(const RunResult& run, const charts::Choice& choice) {
  std::string out;
  write_trace(run, choice, [&](std::string_view piece) { out += piece; });
  return out;
}

}  // namespace mllmsim::results
