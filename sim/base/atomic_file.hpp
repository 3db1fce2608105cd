// Every file we write appears whole or not at all: a temporary file in the same directory, fsync,
// rename over the target, fsync of the directory. A reader never sees half a file, and a failure
// leaves what was there before and no temporary file.
//
// A symbolic link keeps pointing where it did. A device or pipe (/dev/stdout) cannot be replaced:
// it is written in place.
#pragma once

#include <filesystem>
#include <string_view>

namespace mllmsim {

// Throws EnvironmentError naming the path and the reason.
void write_file_atomically(const std::filesystem::path& path, std::string_view contents);

// The directory and its parents; throws EnvironmentError likewise.
void make_directories(const std::filesystem::path& dir);

}  // namespace mllmsim
