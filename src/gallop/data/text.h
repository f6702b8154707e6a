#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "gallop/data/dataset.h"

namespace gallop::data {

/// A text and the name that errors give it.
struct NamedText {
  std::string_view content;
  std::string name;
};

/// Turns texts into tokens with one vocabulary for all of them: the UTF-8 characters that occur,
/// sorted by code point. Throws DataError that names the text and the offset of the first byte that
/// is not UTF-8.
std::vector<std::unique_ptr<TextSet>> tokenize_characters(const std::vector<NamedText>& texts);

/// The same with one token for each byte, 256 in all.
std::vector<std::unique_ptr<TextSet>> tokenize_bytes(const std::vector<NamedText>& texts);

/// Bytes of the UTF-8 character that begins at byte `at`; 0 where the bytes are not UTF-8 (RFC
/// 3629).
size_t character_length(std::string_view text, size_t at);

}  // namespace gallop::data
