#pragma once

#include <iterator>
#include <string>
#include <utility>

#include <fmt/format.h>

namespace gallop::compile {

/// Text of a program, written line by line.
class SourceText {
 protected:
  /// Braces of the text are doubled, as in all formats.
  template <typename... Arguments>
  void line(fmt::format_string<Arguments...> format, Arguments&&... arguments) {
    text_.append(indent_, ' ');
    fmt::format_to(std::back_inserter(text_), format, std::forward<Arguments>(arguments)...);
    text_ += '\n';
  }
  /// A line that opens a block, and the one that ends it.
  template <typename... Arguments>
  void open(fmt::format_string<Arguments...> format, Arguments&&... arguments) {
    line(format, std::forward<Arguments>(arguments)...);
    indent_ += 2;
  }
  void close(const char* text = "}") {
    indent_ -= 2;
    line("{}", text);
  }

  std::string text_;

 private:
  size_t indent_ = 0;
};

}  // namespace gallop::compile
