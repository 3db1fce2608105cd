// Plain text in columns: numbers to the right, words to the left, two blanks between columns, no
// boxes. Width is counted in UTF-8 code points; wide and combining characters are left out.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace mllmsim::results {

enum class Align { left, right };

struct TextColumn {
  std::string heading;
  Align align = Align::right;
  bool shrinks = false;  // its cells are shortened when lines would be too long
};

class TextTable {
 public:
  // Headings and cells may come from any input: control characters in them are escaped.
  explicit TextTable(std::vector<TextColumn> columns);
  void add_row(std::vector<std::string> cells);

  // Every line starts with `indent` blanks, has no blanks at its end and ends with a newline. Lines
  // are at most `width` wide if the columns that shrink allow it. No heading line if all are empty.
  std::string text(std::size_t indent, std::size_t width) const;

  // The same as a Markdown table, nothing shortened.
  std::string markdown() const;

 private:
  std::vector<std::size_t> column_widths(std::size_t indent, std::size_t width) const;

  std::vector<TextColumn> columns_;
  std::vector<std::vector<std::string>> rows_;
};

std::size_t text_width(std::string_view utf8);

// At most `width` wide; what is cut off shows as "...".
std::string shortened(const std::string& text, std::size_t width);

// Words on lines at most `width` wide, each after `indent` blanks and ended by a newline.
std::string wrapped(std::string_view text, std::size_t indent, std::size_t width);

}  // namespace mllmsim::results
