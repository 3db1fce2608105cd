// Where the data that comes with the program is: scenarios, calibrations, data sheets.
#pragma once

#include <filesystem>

namespace mllmsim {

// $MLLMSIM_DATA if set; else ../share/mllmsim beside the program's directory if that exists; else
// what use_data_directory() named; else the source tree the program was built from.
std::filesystem::path data_directory();

// Call it at start-up: nothing is locked. Returns true, so that a variable can do it.
bool use_data_directory(std::filesystem::path directory);

}  // namespace mllmsim
