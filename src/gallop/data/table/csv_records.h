#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

#include "gallop/data/table/cell.h"

namespace gallop::data {

/// "FILE:LINE:COLUMN" of a byte of a file's content, both from 1, for messages.
std::string csv_place(std::string_view file, std::string_view content, size_t offset);

/// How the records of a text are written.
struct CsvFormat {
  std::string_view file;  ///< Named in messages.
  char separator = ',';
  bool keeps_blanks = false;  ///< Blanks around fields without quotes are part of them.
  size_t offset = 0;          ///< The first byte to read.
};

/// Iterates over the records of CSV text (RFC 4180), whose lines may end with LF, CRLF or CR.
/// Quoted fields may contain separators, line ends and doubled quotes.
class CsvRecords {
 public:
  /// Both texts must outlive it.
  CsvRecords(std::string_view content, const CsvFormat& format)
      : content_(content), format_(format), at_(format.offset) {}

  /// Reads the next record that is not an empty line. The cells are valid until the next call.
  /// False at the end. Throws DataError with the place of a quote that does not end, or of text
  /// after a quoted field.
  bool next(std::vector<Cell>& cells);
  /// The 1-based line on which the current record begins.
  int64_t line() const { return line_; }
  /// The number of lines up to its end.
  int64_t lines() const { return next_line_ - 1; }
  /// The first byte after the current record.
  size_t offset() const { return at_; }

 private:
  Cell read_cell();
  Cell read_quoted();
  void skip_blanks();
  bool ends_line() const { return content_[at_] == '\n' || content_[at_] == '\r'; }
  void end_line();

  std::string_view content_;
  CsvFormat format_;
  size_t at_;
  int64_t line_ = 1, next_line_ = 1;
  std::deque<std::string> unescaped_;  // Fields of the current record.
};

/// Those that are detected.
inline constexpr char kCsvSeparators[] = {',', ';', '\t', '|'};

/// The separator with which the records of a text have the same number of fields, one of
/// kCsvSeparators. Comma if none occurs.
char detect_separator(std::string_view content);

}  // namespace gallop::data
