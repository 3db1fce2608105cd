// Files, read and written whole.
//
// Reading takes regular files only, so that a directory or a pipe given by mistake is named and not
// waited for, and at most as many bytes as the caller says.
//
// Every file we write appears whole or not at all: a temporary file in the same directory, fsync,
// rename over the target, fsync of the directory. A reader never sees half a file, and a failure
// leaves what was there before and no temporary file. A symbolic link keeps pointing where it did.
// A device or pipe (/dev/stdout) cannot be replaced: it is written in place.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>

namespace mllmsim {

// What people write, and what programs leave: more is a mistake.
inline constexpr std::uint64_t kSmallFile = std::uint64_t{1} << 20;
inline constexpr std::uint64_t kLargeFile = std::uint64_t{1} << 34;

// Throws UserError if there is no such file, it is no regular file or it is larger than `limit`;
// EnvironmentError, naming the reason, if it cannot be read.
std::string read_file(const std::filesystem::path& path, std::uint64_t limit);

// Throws EnvironmentError naming the path and the reason.
void write_file_atomically(const std::filesystem::path& path, std::string_view contents);

// Files that belong together: all are on disk before the first takes its place, so what fails for
// want of room changes none of them. They take their places in this order, one process after the
// other.
struct FileContents {
  std::filesystem::path path;
  std::string contents;
};
void write_files_atomically(std::span<const FileContents> files);

// Removes what a killed process left of its writing: temporary files of processes that do not live.
// A file that cannot be removed stays.
void remove_stale_temporaries(const std::filesystem::path& directory);

// The directory and its parents; throws EnvironmentError likewise.
void make_directories(const std::filesystem::path& dir);

}  // namespace mllmsim
