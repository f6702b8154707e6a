#include "gallop/base/csv.h"

#include <string_view>

#include "gallop/base/text.h"

namespace gallop {

namespace {

// Whether a spreadsheet would evaluate it as a formula ("CSV Injection", OWASP).
bool is_formula(const std::string& text) {
  constexpr std::string_view kBeginnings = "=+-@\t\r";
  return !text.empty() && kBeginnings.find(text.front()) != std::string_view::npos &&
         !parse_number<double>(text);
}

std::string csv_field(const std::string& field) {
  std::string text = is_formula(field) ? "'" + field : field;
  if (text.find_first_of(",\"\n\r") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char letter : text) quoted += letter == '"' ? "\"\"" : std::string(1, letter);
  return quoted + "\"";
}

}  // namespace

std::string csv_line(const std::vector<std::string>& fields) {
  std::string line;
  for (size_t i = 0; i < fields.size(); ++i) line += (i > 0 ? "," : "") + csv_field(fields[i]);
  return line + "\r\n";
}

}  // namespace gallop
