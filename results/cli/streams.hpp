// Standard output and error, the one way the commands write to them.
//
// stdout is what was asked for: what cannot be written ends the program with exit 3, never with 0.
// A reader that has gone (`| head -1`) is no failure of ours: the program ends without a word and
// with 141, as shells show SIGPIPE. Commands write their files before they print, so that neither
// loses results. stderr is talk: what cannot be written there is lost.
//
// Names, keys and paths of any input are inert on a terminal: control characters are escaped.
#pragma once

#include <exception>
#include <string_view>

namespace mllmsim::cli {

inline constexpr int kReaderGone = 141;

class ReaderGone : public std::exception {
 public:
  const char* what() const noexcept override { return "the reader of standard output has gone"; }
};

// First of all in main: a closed descriptor 0, 1 or 2 must not become that of a file of ours, and
// neither a reader that leaves nor a limit on the size of files (ulimit -f) must kill us.
void prepare_streams();

// To stdout, at once. Throws EnvironmentError or ReaderGone.
void print_text(std::string_view text);  // for people
void print_data(std::string_view data);  // JSON and CSV, byte for byte unless to a terminal

// To stderr; the line end is added.
void say(std::string_view text);

}  // namespace mllmsim::cli
