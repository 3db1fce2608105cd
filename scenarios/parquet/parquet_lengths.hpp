// Lengths files in Parquet. Apart from the other readers, so that the library needs no Arrow.
#pragma once

namespace mllmsim::scenarios {

// From here on read_lengths() takes .parquet files.
void register_parquet_lengths();

}  // namespace mllmsim::scenarios
