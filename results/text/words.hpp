// The words that people read for what tables call by name, in one place: terminal, pictures,
// reports and traces all say them. Programs read the names themselves, in Parquet and JSON.
#pragma once

#include <string>
#include <string_view>

#include "sim/account/bubbles.hpp"
#include "sim/account/critical_path.hpp"
#include "sim/account/memory.hpp"
#include "sim/kernel/task_kinds.hpp"

namespace mllmsim::results {

// What a device waits for, does, or does it on: "waiting for a neighbour stage", "tensor-parallel
// communication", "sending to the next stage".
std::string_view words(BubbleKind kind);
std::string_view words(SpanKind kind);
std::string_view words(PathKind kind);
std::string_view words(StreamKind stream);
std::string_view words(Holding holding);

// A column of runs or a key of a scenario, with its unit: "step time (s)", "nodes". One that is not
// in the list is its last part with spaces, and the unit that its name ends with.
std::string words_of_column(const std::string& name);

// A value of that column in the unit that the words say: bytes are shown in GiB.
double shown(const std::string& column, double value);

// A name with spaces: "hidden_share_fine" reads "hidden share fine".
std::string spaced(std::string name);

}  // namespace mllmsim::results
