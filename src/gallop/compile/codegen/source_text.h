#pragma once

#include <iterator>
#include <string>
#include <utility>

#include <fmt/format.h>

namespace gallop::compile {

/// Source text, written line by line.
class SourceText {
 protected:
  /// Appends a line in the syntax of fmt::format: braces in the text are doubled.
  template <typename... Arguments>
  void line(fmt::format_string<Arguments...> format, Arguments&&... arguments) {
    text_.append(indent_, ' ');
    fmt::format_to(std::back_inserter(text_), format, std::forward<Arguments>(arguments)...);
    text_ += '\n';
  }
  /// Appends a line that opens a block, or the one that ends it.
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
