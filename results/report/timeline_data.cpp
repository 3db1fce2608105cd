#include "results/report/timeline_data.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "results/charts/lanes.hpp"
#include "results/charts/span_look.hpp"
#include "results/text/words.hpp"
#include "sim/base/base64.hpp"
#include "sim/tables/gzip.hpp"

namespace mllmsim::report {
namespace {

namespace json = boost::json;

// More of one run would make a page that nobody can open.
constexpr std::size_t kMostSpans = 1'500'000;
constexpr std::ptrdiff_t kMostSpansOfReplicas = 300'000;  // of a step

template <class T>
void append(std::string& to, const std::vector<T>& values) {
  to.append(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T));
}

class Columns {
 public:
  void row_starts() { last_end_ = 0; }
  void add(const results::SpanRow& s) {
    gap_.push_back(static_cast<double>(s.start.value - last_end_));
    duration_.push_back(static_cast<double>((s.end - s.start).value));
    bytes_.push_back(static_cast<double>(s.bytes.value));
    micro_batch_.push_back(s.micro_batch);
    chunk_.push_back(static_cast<std::int16_t>(s.chunk));
    kind_.push_back(kind(s));
    last_end_ = s.end.value;
  }
  std::string blob() const {
    std::string out;
    append(out, gap_), append(out, duration_), append(out, bytes_);
    append(out, micro_batch_), append(out, kind_), append(out, chunk_);
    return base64(tables::gzip(out));
  }
  json::array kinds() const { return kinds_; }
  std::size_t size() const { return gap_.size(); }

 private:
  std::uint16_t kind(const results::SpanRow& s) {
    const auto [at, added] =
        ids_.try_emplace({s.kind, std::string(results::text_of(s))}, ids_.size());
    if (added)
      kinds_.push_back({{"kind", results::words(s.kind)},
                        {"name", s.kind == SpanKind::bubble ? results::words(s.bubble)
                                                            : std::string_view(s.name)},
                        {"look", charts::look_of(s)}});
    return static_cast<std::uint16_t>(at->second);
  }

  std::vector<double> gap_, duration_, bytes_;
  std::vector<std::int32_t> micro_batch_;
  std::vector<std::uint16_t> kind_;
  std::vector<std::int16_t> chunk_;
  std::map<std::pair<SpanKind, std::string>, std::size_t> ids_;
  json::array kinds_;
  std::int64_t last_end_ = 0;
};

json::object step_data(const results::RunResult& run, const charts::View& view) {
  Columns columns;
  json::array lanes, rows;
  for (std::size_t i = 0; i < view.lanes.size(); ++i) {
    const charts::Lane& lane = view.lanes[i];
    const std::int64_t last = lane.first_rank + run.tp - 1;
    lanes.push_back({{"label", fmt::format("stage {}", lane.stage)},
                     {"replica", lane.replica},
                     {"ranks", run.tp > 1 ? fmt::format("ranks {}-{}", lane.first_rank, last)
                                          : fmt::format("rank {}", lane.first_rank)}});
    std::map<StreamKind, std::vector<const results::SpanRow*>> by_stream;
    for (const results::SpanRow* s : lane.spans)
      if (s->end > s->start) by_stream[s->stream].push_back(s);
    for (const auto& [stream, spans] : by_stream) {
      columns.row_starts();
      for (const results::SpanRow* s : spans) columns.add(*s);
      rows.push_back({{"lane", i}, {"stream", static_cast<int>(stream)}, {"spans", spans.size()}});
    }
  }
  return {{"step", view.step},      {"end", view.end.value},          {"lanes", lanes},
          {"rows", rows},           {"kinds", columns.kinds()},       {"spans", columns.size()},
          {"blob", columns.blob()}, {"lanes_left_out", view.left_out}};
}

// All replicas if they are not too many spans, otherwise those of a picture.
charts::View view_for_page(const results::RunResult& run, std::int64_t step) {
  const auto of_step = [&](const results::SpanRow& s) { return s.step == step; };
  if (std::ranges::count_if(run.spans, of_step) > kMostSpansOfReplicas)
    return charts::view_of(run, {step, {}, {}});
  return charts::view_of(run, {step, {{0, run.gpus - 1}}, {}});
}

}  // namespace

json::object timeline_data(std::span<const results::RunResult> runs) {
  json::array all;
  for (const results::RunResult& run : runs) {
    std::set<std::int64_t> steps;
    for (const results::SpanRow& s : run.spans) steps.insert(s.step);
    json::array kept;
    std::size_t spans = 0, left_out = 0;
    for (const std::int64_t step : steps) {
      const charts::View view = view_for_page(run, step);
      std::size_t more = 0;
      for (const charts::Lane& lane : view.lanes) more += lane.spans.size();
      if (!kept.empty() && spans + more > kMostSpans) {
        ++left_out;
        continue;
      }
      spans += more;
      kept.push_back(step_data(run, view));
    }
    all.push_back(
        {{"name", run.name}, {"strategy", run.strategy}, {"steps", kept}, {"left_out", left_out}});
  }
  json::array look_list;
  for (const charts::SpanLook& l : charts::span_looks())
    look_list.push_back({{"name", l.name},
                         {"colour", fmt::format("#{:06x}", l.colour)},
                         {"fill", name_of(l.fill)},
                         {"bubble", l.bubble},
                         {"dark", l.dark},
                         {"alone", fmt::format("#{:06x}", l.alone)}});
  json::array streams;
  for (std::uint32_t i = 0; i < kStreamKinds; ++i) {
    const auto kind = static_cast<StreamKind>(i);
    streams.push_back(
        {{"name", results::words(kind)}, {"strip", static_cast<int>(charts::strip_of(kind))}});
  }
  return {{"looks", look_list}, {"streams", streams}, {"strips", charts::kStrips}, {"runs", all}};
}

}  // namespace mllmsim::report
