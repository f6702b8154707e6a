#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "gallop/data/dataset.h"

namespace gallop::data {

/// A text and its name in error messages.
struct NamedText {
  std::string_view content;
  std::string name;
};

/// Converts texts to tokens with a common vocabulary: the UTF-8 characters that occur, sorted by
/// code point. Throws DataError that names the text and the offset of the first byte that is not
/// UTF-8.
std::vector<std::unique_ptr<TextSet>> tokenize_characters(const std::vector<NamedText>& texts);

/// Like tokenize_characters(), but with the 256 byte values as vocabulary.
std::vector<std::unique_ptr<TextSet>> tokenize_bytes(const std::vector<NamedText>& texts);

/// The number of bytes of the UTF-8 character that begins at byte `at`; 0 if it is not valid UTF-8
/// (RFC 3629).
size_t character_length(std::string_view text, size_t at);

}  // namespace gallop::data
