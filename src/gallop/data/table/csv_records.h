#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

namespace gallop::data {

/// A field of a CSV record.
struct CsvCell {
  std::string_view text;  ///< Without quotes; without surrounding blanks if it was not quoted.
  size_t offset = 0;      ///< Of its first byte in the content.
  bool is_quoted = false;
};

/// "FILE:LINE:COLUMN" of a byte of a file's content, both from 1, for messages.
std::string csv_place(const std::string& file, std::string_view content, size_t offset);

/// Iterates over the records of CSV text (RFC 4180), whose lines may end with LF, CRLF or CR.
/// Quoted fields may contain separators, line ends and doubled quotes.
class CsvRecords {
 public:
  /// All must outlive it; `file` is named in messages. Begins at byte `offset`.
  CsvRecords(const std::string& file, std::string_view content, char separator, size_t offset = 0)
      : file_(file), content_(content), separator_(separator), at_(offset) {}

  /// Reads the next record that is not an empty line. The cells are valid until the next call.
  /// False at the end. Throws DataError with the place of a quote that does not end, or of text
  /// after a quoted field.
  bool next(std::vector<CsvCell>& cells);
  /// The 1-based line on which the current record begins.
  int64_t line() const { return line_; }
  /// The number of lines up to its end.
  int64_t lines() const { return next_line_ - 1; }
  /// The first byte after the current record.
  size_t offset() const { return at_; }

 private:
  CsvCell read_cell();
  CsvCell read_quoted();
  void skip_blanks();
  bool ends_line() const { return content_[at_] == '\n' || content_[at_] == '\r'; }
  void end_line();

  const std::string& file_;
  std::string_view content_;
  char separator_;
  size_t at_;
  int64_t line_ = 1, next_line_ = 1;
  std::deque<std::string> unescaped_;  // Of the current record.
};

/// The separator with which the records of a text have the same number of fields: comma, semicolon,
/// tab or '|'. Comma if none occurs.
char detect_separator(std::string_view content);

}  // namespace gallop::data
