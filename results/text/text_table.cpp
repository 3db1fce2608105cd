#include "results/text/text_table.hpp"

#include <algorithm>
#include <sstream>

#include "sim/base/errors.hpp"
#include "sim/base/text.hpp"

namespace mllmsim::results {
namespace {

constexpr std::string_view kGap = "  ";

// As plain text: none of its signs ends the cell, is a link or is HTML.
std::string in_markdown(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '<')
      out += "&lt;";
    else if (std::string_view("|\\`[]!").find(c) != std::string_view::npos)
      out += {'\\', c};
    else
      out += c;
  }
  return out;
}

bool starts_character(char c) { return (static_cast<unsigned char>(c) & 0xC0U) != 0x80U; }

}  // namespace

std::size_t text_width(std::string_view utf8) {
  return static_cast<std::size_t>(std::count_if(utf8.begin(), utf8.end(), starts_character));
}

std::string shortened(const std::string& text, std::size_t width) {
  constexpr std::string_view kDots = "...";
  if (text_width(text) <= width) return text;
  std::size_t room = width - std::min(width, kDots.size());
  std::size_t end = 0;
  for (; end < text.size(); ++end)
    if (starts_character(text[end]) && room-- == 0) break;
  return text.substr(0, end) + std::string(kDots.substr(0, width));
}

std::string wrapped(std::string_view text, std::size_t indent, std::size_t width) {
  std::istringstream words{std::string(text)};
  std::string out, line, word;
  const auto flush = [&] {
    out += std::string(indent, ' ') + line + '\n';
    line.clear();
  };
  while (words >> word) {
    if (!line.empty() && indent + text_width(line) + 1 + text_width(word) > width) flush();
    line += (line.empty() ? "" : " ") + word;
  }
  if (!line.empty()) flush();
  return out;
}

TextTable::TextTable(std::vector<TextColumn> columns) : columns_(std::move(columns)) {
  for (TextColumn& column : columns_) column.heading = printable(column.heading);
}

void TextTable::add_row(std::vector<std::string> cells) {
  check(cells.size() == columns_.size(), "a table row has as many cells as there are headings");
  for (std::string& cell : cells) cell = printable(cell);
  rows_.push_back(std::move(cells));
}

std::vector<std::size_t> TextTable::column_widths(std::size_t indent, std::size_t width) const {
  std::vector<std::size_t> widths;
  std::size_t line = indent;
  for (std::size_t c = 0; c < columns_.size(); ++c) {
    widths.push_back(text_width(columns_[c].heading));
    for (const auto& row : rows_) widths[c] = std::max(widths[c], text_width(row[c]));
    line += widths[c] + (c == 0 ? 0 : kGap.size());
  }
  for (std::size_t c = 0; c < columns_.size() && line > width; ++c) {
    if (!columns_[c].shrinks) continue;
    const std::size_t spare = widths[c] - text_width(columns_[c].heading);
    const std::size_t cut = std::min(spare, line - width);
    widths[c] -= cut;
    line -= cut;
  }
  return widths;
}

std::string TextTable::text(std::size_t indent, std::size_t width) const {
  const std::vector<std::size_t> widths = column_widths(indent, width);
  std::string out;
  const auto add_line = [&](const std::vector<std::string>& cells) {
    std::string line(indent, ' ');
    for (std::size_t c = 0; c < cells.size(); ++c) {
      const std::string cell = shortened(cells[c], widths[c]);
      const std::string pad(widths[c] - text_width(cell), ' ');
      if (c > 0) line += kGap;
      line += columns_[c].align == Align::right ? pad + cell : cell + pad;
    }
    line.erase(line.find_last_not_of(' ') + 1);
    out += line + '\n';
  };
  std::vector<std::string> headings;
  for (const TextColumn& column : columns_) headings.push_back(column.heading);
  if (std::any_of(headings.begin(), headings.end(), [](const auto& h) { return !h.empty(); }))
    add_line(headings);
  for (const auto& row : rows_) add_line(row);
  return out;
}

std::string TextTable::markdown() const {
  const auto line = [](const std::vector<std::string>& cells) {
    std::string out = "|";
    for (const std::string& cell : cells) out += ' ' + in_markdown(cell) + " |";
    return out + '\n';
  };
  std::vector<std::string> headings, rules;
  for (const TextColumn& column : columns_) {
    headings.push_back(column.heading);
    rules.emplace_back(column.align == Align::right ? "--:" : "---");
  }
  std::string out = line(headings) + line(rules);
  for (const auto& row : rows_) out += line(row);
  return out;
}

}  // namespace mllmsim::results
