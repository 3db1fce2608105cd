// Logs of nccl-tests, text or JSON.
#include "cost_models/fit/import_nccl.hpp"
#include "tests/fuzz/fuzz.hpp"

namespace mllmsim::fuzz {
namespace {

void use(const fit::RawData& raw) {
  if (fit::parse_raw(fit::to_json_lines(raw), "again.jsonl").size() != raw.size())
    throw std::logic_error("measurements that are others when read again");
}

void read(const std::string& bytes) {
  attempt([&] { use(fit::parse_nccl(bytes, "sendrecv_perf.log")); });
  use(fit::parse_nccl(bytes, "log.txt", "all_gather"));
}

const Registered kTarget("nccl", read);

}  // namespace
}  // namespace mllmsim::fuzz
