// Words in and out: cutting up what was written, numbers in it, and "did you mean ...?", the known
// name nearest to it by edit distance. Joining is fmt::join.
#pragma once

#include <charconv>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace mllmsim {

// Without spaces, tabs and carriage returns at both ends.
std::string_view trimmed(std::string_view text);

// The parts between separators, one more than there are separators.
std::vector<std::string_view> split(std::string_view text, char separator);

// Takes a line off the front of `text`: the line without its end, "\n" or "\r\n".
std::string_view take_line(std::string_view& text);

// The number that the whole text is; nothing if it is none, or not one that T holds.
template <class T>
std::optional<T> to_number(std::string_view text) {
  T value{};
  const char* const last = text.data() + text.size();
  const auto [end, error] = std::from_chars(text.data(), last, value);
  if (error != std::errc{} || end != last) return std::nullopt;
  return value;
}

// As a terminal may see it: control characters (with C1, U+0080 to U+009F) and bytes that are not
// UTF-8 as \x1b; the rest as it is. Lines: line ends stay.
std::string printable(std::string_view text);
std::string printable_lines(std::string_view text);

// Insertions, deletions, replacements and swaps of neighbours that turn a into b.
std::size_t edit_distance(std::string_view a, std::string_view b);

// "; did you mean \"x\"?", or "" if nothing known is near: more than a third of the letters differ
// (one always may). The first of equally near names wins.
std::string did_you_mean(std::string_view written, const std::vector<std::string>& known);

// The same, and if nothing is near all that is known: "; there are \"a\" or \"b\"".
std::string near_or_all(std::string_view written, const std::vector<std::string>& known);

// "a", "b" or "c"
std::string one_of(const std::vector<std::string>& names);

}  // namespace mllmsim
