// Where the data that comes with the program is: scenarios, calibrations, data sheets.
#pragma once

#include <filesystem>

namespace mllmsim {

// $MLLMSIM_DATA if set; else ../share/mllmsim beside the program's directory if that exists; else
// the source tree the program was built from.
std::filesystem::path data_directory();

}  // namespace mllmsim
