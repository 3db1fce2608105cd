#include "sim/base/csv.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "sim/base/errors.hpp"
#include "sim/base/text.hpp"

namespace mllmsim {
namespace {

bool is_formula(std::string_view text) {
  if (text.empty() || std::string_view("=+-@\t\r").find(text[0]) == std::string_view::npos)
    return false;
  return !to_number<double>(text.substr(text[0] == '+'));  // which from_chars does not take
}

}  // namespace

CsvReader::CsvReader(std::string_view text, std::string file)
    : text_(text), file_(std::move(file)) {
  constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
  if (text_.starts_with(kByteOrderMark)) text_.remove_prefix(kByteOrderMark.size());
}

bool CsvReader::next(std::vector<CsvField>& record) {
  while (at_ < text_.size()) {
    const std::size_t start = at_;
    comment_ = text_[start] == '#';
    std::size_t fields = 0;
    bool more = true;
    while (more) {
      if (record.size() == fields) record.emplace_back();
      more = take_field(record[fields++]);
    }
    record.resize(fields);
    written_ = text_.substr(start, at_ - start);
    if (written_.ends_with('\n')) written_.remove_suffix(1);
    written_ = trimmed(written_);
    if (!written_.empty()) return true;
  }
  record.clear();
  return false;
}

// Whether another follows on the line; if not, the line end is taken too.
bool CsvReader::take_field(CsvField& field) {
  field.line = line_;
  field.column = static_cast<std::uint32_t>(at_ - line_start_ + 1);
  const std::size_t first = text_.find_first_not_of(" \t", at_);
  if (first < text_.size() && text_[first] == '"') {
    at_ = first + 1;
    take_quoted(field);
  } else {
    const std::size_t end = std::min(text_.find_first_of(",\n", at_), text_.size());
    field.text = trimmed(text_.substr(at_, end - at_));
    at_ = end;
  }
  if (at_ == text_.size()) return false;
  if (text_[at_++] == ',') return true;
  line_ended();
  return false;
}

void CsvReader::take_quoted(CsvField& field) {
  const auto wrong = [&](const char* why) {
    return UserError(fmt::format("{}:{}:{}", file_, field.line, field.column), "", why);
  };
  field.text.clear();
  bool closed = false;
  while (at_ < text_.size() && !(comment_ && text_[at_] == '\n')) {
    const char c = text_[at_++];
    closed = c == '"' && (at_ == text_.size() || text_[at_] != '"');
    if (closed) break;
    if (c == '"') ++at_;
    if (c == '\n') line_ended();
    field.text += c;
  }
  if (!closed && !comment_) throw wrong("the quote is not closed");
  const std::size_t end = std::min(text_.find_first_of(",\n", at_), text_.size());
  const std::string_view behind = trimmed(text_.substr(at_, end - at_));
  if (!behind.empty() && !comment_) throw wrong("expected a comma behind the closing quote");
  field.text += behind;
  at_ = end;
}

void CsvReader::line_ended() {
  ++line_;
  line_start_ = at_;
}

std::string csv_field(std::string_view written) {
  const std::string text = (is_formula(written) ? "'" : "") + std::string(written);
  if (text.find_first_of(",\"\r\n") == std::string_view::npos && trimmed(text) == text) return text;
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"') out += c;
    out += c;
  }
  return out + '"';
}

}  // namespace mllmsim
