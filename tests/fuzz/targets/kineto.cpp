// Traces of PyTorch's profiler.
#include "cost_models/fit/import_kineto.hpp"
#include "tests/fuzz/fuzz.hpp"

namespace mllmsim::fuzz {
namespace {

void read(const std::string& bytes) {
  const fit::RawData raw = fit::parse_kineto(bytes, "trace.json");
  if (fit::parse_raw(fit::to_json_lines(raw), "again.jsonl").size() != raw.size())
    throw std::logic_error("measurements that are others when read again");
}

const Registered kTarget("kineto", read);

}  // namespace
}  // namespace mllmsim::fuzz
