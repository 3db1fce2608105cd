// Traces of real steps, of a run of two pipeline ranks with two chunks each.
#include "results/trace/measured_trace.hpp"
#include "results/analysis/compare_trace.hpp"
#include "tests/fuzz/fuzz.hpp"

namespace mllmsim::fuzz {
namespace {

void read(const std::string& bytes) {
  results::RunResult run;
  run.name = "run";
  run.gpus = 2;
  run.pp = 2;
  run.vpp = 2;
  const results::RunResult trace = results::parse_trace({{"trace.json", bytes}}, run);
  for (const results::SpanRow& s : trace.spans)
    if (s.end < s.start || s.stage > 1)
      throw std::logic_error("a span of no lane, or that ends before it starts");
  analysis::trace_text(analysis::compare_trace(trace, trace));
}

const Registered kTarget("measured_trace", read);

}  // namespace
}  // namespace mllmsim::fuzz
