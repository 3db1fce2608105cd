// Copies of gradients in the memory of the shown step.
#include "strategies/run/gradient_copies.hpp"

#include <gtest/gtest.h>

namespace mllmsim::run {
namespace {

Span span(SpanKind kind, std::int64_t start, std::int64_t end, int stage) {
  Span out;
  out.kind = kind;
  out.stage = stage;
  out.start = Time{start};
  out.end = Time{end};
  return out;
}

// Activations until 10; gradients are reduced from 12 to 15 with 600 bytes of copies, updated from
// 16 to 18 with 800. The second stage has none.
TEST(GradientCopies, AreThereWhileGradientsAreReducedAndUpdated) {
  step::StepEnd end;
  end.phases = {{Bytes{600}}, {Bytes{200}, Bytes{400}}, {Bytes{800}}};
  end.reducing = 1;
  const std::vector<Span> spans{
      span(SpanKind::backward, 4, 10, 0), span(SpanKind::dp_reduce_scatter, 12, 15, 0),
      span(SpanKind::optimizer, 16, 17, 0), span(SpanKind::optimizer, 17, 18, 0)};
  std::vector<MemoryChange> memory{{0, 0, 0, Time{0}, Bytes{500}, {}, {}},
                                   {0, 0, 0, Time{10}, Bytes{0}, {}, {}},
                                   {0, 0, 1, Time{0}, Bytes{7}, {}, {}}};
  add_copies(spans, {end, {}}, memory);
  std::vector<std::tuple<int, std::int64_t, std::int64_t, std::int64_t>> rows;
  for (const MemoryChange& m : memory)
    rows.emplace_back(m.stage, m.time.value, m.bytes.value, m.copies.value);
  EXPECT_EQ(rows, (decltype(rows){{0, 0, 500, 0},
                                  {0, 10, 0, 0},
                                  {0, 12, 600, 600},
                                  {0, 15, 0, 0},
                                  {0, 16, 800, 800},
                                  {0, 18, 0, 0},
                                  {1, 0, 7, 0}}));
}

}  // namespace
}  // namespace mllmsim::run
