// Comma-separated values (RFC 4180): cells may be quoted, "a, b", with "" for a quote, and then may
// hold line ends; lines end with \n or \r\n. Beyond the standard, as files of the world need it:
//
//   - blanks around a cell do not count, but inside quotes they do
//   - blank lines are passed over, and so is a byte order mark
//   - a record that begins with # may be a comment: its quotes end with its line at the latest
//
// Cells remember where they stand. What the first record means is up to the caller.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace mllmsim {

struct CsvField {
  std::string text;
  std::uint32_t line = 0, column = 0;  // where it begins, from 1
};

class CsvReader {
 public:
  // The text must outlive it; `file` is for messages.
  CsvReader(std::string_view text, std::string file);

  // The next record; false after the last. Throws UserError with file:line:column of a quote that
  // is not closed, or of one with more than blanks behind it.
  bool next(std::vector<CsvField>& record);

  // The record that next() gave last, as it is written.
  std::string_view written() const { return written_; }

 private:
  bool take_field(CsvField& field);
  void take_quoted(CsvField& field);
  void line_ended();

  std::string_view text_, written_;
  std::string file_;
  std::size_t at_ = 0, line_start_ = 0;
  std::uint32_t line_ = 1;
  bool comment_ = false;
};

// A text as a cell, in quotes if it must be. People open tables in spreadsheets, which run what
// begins with = + - @ as a formula: that gets an apostrophe in front, unless it is a number.
std::string csv_field(std::string_view text);

}  // namespace mllmsim
