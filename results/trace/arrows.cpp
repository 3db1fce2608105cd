#include "results/trace/arrows.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <tuple>

namespace mllmsim::results {
namespace {

// Where a sending stream's transfers arrive, and how many stages further on if that is fixed.
struct Receiver {
  StreamKind stream;
  std::optional<int> stages_on;
};

std::optional<Receiver> receiver_of(StreamKind sending) {
  switch (sending) {
    case StreamKind::pp_send_next:
      return Receiver{StreamKind::pp_recv_prev, 1};
    case StreamKind::pp_send_prev:
      return Receiver{StreamKind::pp_recv_next, -1};
    case StreamKind::encoder_send_next:
      return Receiver{StreamKind::encoder_recv_prev, std::nullopt};
    case StreamKind::encoder_send_prev:
      return Receiver{StreamKind::encoder_recv_next, std::nullopt};
    case StreamKind::compute:
    case StreamKind::tp:
    case StreamKind::pp_recv_prev:
    case StreamKind::pp_recv_next:
    case StreamKind::dp:
    case StreamKind::encoder_recv_prev:
    case StreamKind::encoder_recv_next:
      return std::nullopt;
  }
  return std::nullopt;
}

// What both ends of a transfer have in common.
using Key = std::tuple<int, StreamKind, int, Time, Time, Bytes>;
Key key(StreamKind receiving, const SpanRow& s) {
  return {s.replica, receiving, s.micro_batch, s.start, s.end, s.bytes};
}

struct End {
  const charts::Lane* lane;
  const SpanRow* span;
};

}  // namespace

std::vector<Arrow> arrows_of(const charts::View& view, int stages) {
  std::map<Key, std::vector<End>> receives;
  for (const charts::Lane& lane : view.lanes)
    for (const SpanRow* s : lane.spans)
      if (s->kind == SpanKind::pp_recv) receives[key(s->stream, *s)].push_back({&lane, s});

  std::vector<Arrow> arrows;
  for (const charts::Lane& lane : view.lanes)
    for (const SpanRow* s : lane.spans) {
      const std::optional<Receiver> receiver = receiver_of(s->stream);
      if (!receiver) continue;
      std::vector<End>& ends = receives[key(receiver->stream, *s)];
      const auto at = std::ranges::find_if(ends, [&](const End& end) {
        if (!receiver->stages_on) return end.lane->stage != lane.stage;
        return end.lane->stage == (lane.stage + *receiver->stages_on + stages) % stages;
      });
      if (at == ends.end()) continue;
      arrows.push_back({&lane, at->lane, s, at->span});
      ends.erase(at);  // a receive has one send
    }
  return arrows;
}

}  // namespace mllmsim::results
