// The journal of a sweep: any bytes as a file, and as one record whose checksum is right.
#include "results/sweep/journal.hpp"

#include "results/sweep/record.hpp"
#include "tests/fuzz/fuzz.hpp"

namespace mllmsim::fuzz {
namespace {

void read(const std::string& bytes) {
  if (const auto record = sweep::decode(bytes))
    if (sweep::encode(record->key, record->run) != bytes)
      throw std::logic_error("a record that is another one when written again");
  std::filesystem::create_directories(scratch() / "sweep");
  scratch_file("sweep/sweep.journal", bytes);
  const std::size_t whole = sweep::journal_records(scratch() / "sweep");
  const sweep::Journal journal(scratch() / "sweep");
  if (journal.finished().size() > whole) throw std::logic_error("more points than records");
}

const Registered kTarget("journal", read);

}  // namespace
}  // namespace mllmsim::fuzz
