// Text as a sequence of characters or bytes.
#include <algorithm>
#include <array>
#include <limits>

#include <fmt/format.h>

#include "gallop/base/error.h"
#include "gallop/base/file.h"
#include "gallop/base/text.h"
#include "gallop/data/find.h"
#include "gallop/data/part.h"
#include "gallop/data/readers.h"

namespace gallop::data {

namespace {

using PartTexts = std::array<std::string, kParts>;

// Length in bytes of the UTF-8 character at `at` (Unicode 15, table 3-7), 0 where it is none.
size_t character_length(const std::string& text, size_t at) {
  const auto byte = [&](size_t i) {
    return at + i < text.size() ? static_cast<unsigned char>(text[at + i]) : 0u;
  };
  const auto follows = [&](size_t i, unsigned low = 0x80, unsigned high = 0xBF) {
    return byte(i) >= low && byte(i) <= high;
  };
  const unsigned first = byte(0);
  if (first < 0x80) return 1;
  if (first >= 0xC2 && first <= 0xDF) return follows(1) ? 2 : 0;
  if (first >= 0xE0 && first <= 0xEF) {
    const unsigned low = first == 0xE0 ? 0xA0 : 0x80, high = first == 0xED ? 0x9F : 0xBF;
    return follows(1, low, high) && follows(2) ? 3 : 0;
  }
  if (first >= 0xF0 && first <= 0xF4) {
    const unsigned low = first == 0xF0 ? 0x90 : 0x80, high = first == 0xF4 ? 0x8F : 0xBF;
    return follows(1, low, high) && follows(2) && follows(3) ? 4 : 0;
  }
  return 0;
}

// Cuts a text into characters and calls `take` with each.
template <typename Take>
void each_character(const std::string& text, const fs::path& path, Take take) {
  for (size_t at = 0; at < text.size();) {
    const size_t length = character_length(text, at);
    if (length == 0) {
      throw DataError(
          fmt::format("{}: byte {} begins no UTF-8 character; read it with data.unit=bytes",
                      printable(path.string()), at));
    }
    take(std::string_view(text).substr(at, length));
    at += length;
  }
}

std::vector<std::string> all_bytes() {
  std::vector<std::string> vocabulary;
  for (int byte = 0; byte < 256; ++byte) vocabulary.emplace_back(1, static_cast<char>(byte));
  return vocabulary;
}

// A character as one number, so that looking it up costs no string.
uint32_t pack(std::string_view character) {
  uint32_t packed = 0;
  for (const char c : character) packed = packed << 8 | static_cast<unsigned char>(c);
  return packed;
}

std::string unpack(uint32_t packed) {
  std::string character;
  for (int shift = 24; shift >= 0; shift -= 8) {
    if (packed >> shift != 0) character += static_cast<char>(packed >> shift & 0xFF);
  }
  return character.empty() ? std::string(1, '\0') : character;
}

// Big-endian packing sorts like code points within a length, and longer characters come later.
std::vector<uint32_t> find_characters(const PartTexts& texts,
                                      const std::array<fs::path, kParts>& paths) {
  std::vector<uint32_t> characters;
  for (size_t part = 0; part < kParts; ++part) {
    std::vector<bool> ascii(128);
    each_character(texts[part], paths[part], [&](std::string_view character) {
      const uint32_t packed = pack(character);
      if (packed < 128) {
        ascii[packed] = true;
      } else {
        characters.push_back(packed);
      }
    });
    for (uint32_t i = 0; i < 128; ++i) {
      if (ascii[i]) characters.push_back(i);
    }
    std::sort(characters.begin(), characters.end());
    characters.erase(std::unique(characters.begin(), characters.end()), characters.end());
  }
  return characters;
}

std::unique_ptr<TextSet> by_characters(const std::string& text, const fs::path& path,
                                       const std::vector<uint32_t>& characters) {
  auto set = std::make_unique<TextSet>();
  for (const uint32_t packed : characters) set->vocabulary.push_back(unpack(packed));
  set->tokens.reserve(text.size());
  each_character(text, path, [&](std::string_view character) {
    const auto found = std::lower_bound(characters.begin(), characters.end(), pack(character));
    set->tokens.push_back(static_cast<int32_t>(found - characters.begin()));
  });
  return set;
}

std::unique_ptr<TextSet> by_bytes(const std::string& text) {
  auto set = std::make_unique<TextSet>();
  set->vocabulary = all_bytes();
  set->tokens.reserve(text.size());
  for (const char c : text) set->tokens.push_back(static_cast<unsigned char>(c));
  return set;
}

std::array<fs::path, kParts> find_files(const fs::path& place) {
  std::array<fs::path, kParts> files;
  if (!fs::is_directory(place)) {
    files[0] = place;
    return files;
  }
  for (size_t part = 0; part < kParts; ++part) {
    for (const auto& word : part_words(static_cast<Part>(part))) {
      const fs::path file = place / (word + ".txt");
      if (files[part].empty() && fs::is_regular_file(file)) files[part] = file;
    }
  }
  if (files[0].empty()) {
    throw DataError(fmt::format("{}: has no train.txt; name a file, or a folder that has one",
                                printable(place.string())));
  }
  return files;
}

}  // namespace

void visit(config::Visitor& visitor, TextConfig& config) {
  visitor.field({.name = "unit", .help = "what a token is", .choices = {"characters", "bytes"}},
                config.unit);
}

std::unique_ptr<Parts> read_text(const TextConfig& config, const ReadContext& context) {
  const auto paths = find_files(find_user_data("text", context.path));
  auto parts = std::make_unique<Parts>();
  PartTexts texts;
  for (size_t part = 0; part < kParts; ++part) {
    if (paths[part].empty()) continue;
    texts[part] = read_file(paths[part], std::numeric_limits<int32_t>::max());
    if (texts[part].empty()) {
      throw DataError(fmt::format("{}: the file is empty", printable(paths[part].string())));
    }
    parts->files.push_back(paths[part].string());
  }
  const bool characters = config.unit == "characters";
  const auto vocabulary = characters ? find_characters(texts, paths) : std::vector<uint32_t>();
  const auto tokens = [&](Part part) -> std::unique_ptr<TextSet> {
    const auto at = static_cast<size_t>(part);
    if (paths[at].empty()) return nullptr;
    return characters ? by_characters(texts[at], paths[at], vocabulary) : by_bytes(texts[at]);
  };
  parts->train_text = tokens(Part::kTrain);
  parts->validation_text = tokens(Part::kValidation);
  parts->test_text = tokens(Part::kTest);
  return parts;
}

}  // namespace gallop::data
