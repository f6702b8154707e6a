#include "gallop/data/text.h"

#include <algorithm>
#include <array>
#include <cstring>

#include <fmt/format.h>

#include "gallop/base/error.h"
#include "gallop/base/file.h"
#include "gallop/base/file_state.h"
#include "gallop/base/text.h"
#include "gallop/data/find.h"
#include "gallop/data/packed.h"
#include "gallop/data/part.h"
#include "gallop/data/readers.h"
#include "gallop/data/shared_data.h"

namespace gallop::data {

namespace {

constexpr uint32_t kCodePoints = 0x110000;
constexpr uint32_t kInvalid = kCodePoints;

// Decodes the code point at `at` and advances `at`. Returns kInvalid without advancing if the bytes
// are not UTF-8 (RFC 3629: no overlong forms, surrogates or values above 10FFFF).
uint32_t next_code_point(std::string_view text, size_t& at) {
  const auto byte = [&](size_t i) { return static_cast<uint8_t>(text[i]); };
  const uint8_t first = byte(at);
  if (first < 0x80) {
    ++at;
    return first;
  }
  const size_t length = first < 0xC2   ? 0
                        : first < 0xE0 ? 2
                        : first < 0xF0 ? 3
                        : first < 0xF5 ? 4
                                       : 0;
  if (length == 0 || length > text.size() - at) return kInvalid;
  uint32_t code = first & (0xFFu >> (length + 1));
  for (size_t i = 1; i < length; ++i) {
    if ((byte(at + i) & 0xC0) != 0x80) return kInvalid;
    code = code << 6 | (byte(at + i) & 0x3Fu);
  }
  constexpr std::array<uint32_t, 5> kSmallest{0, 0, 0x80, 0x800, 0x10000};
  if (code < kSmallest[length] || code >= kCodePoints || (code >= 0xD800 && code < 0xE000)) {
    return kInvalid;
  }
  at += length;
  return code;
}

std::string utf8(uint32_t code) {
  std::string text;
  if (code < 0x80) return text += static_cast<char>(code);
  const int tail = code < 0x800 ? 1 : code < 0x10000 ? 2 : 3;
  constexpr std::array<uint32_t, 4> kFirst{0, 0xC0, 0xE0, 0xF0};
  text += static_cast<char>(kFirst[static_cast<size_t>(tail)] | code >> (6 * tail));
  for (int i = tail - 1; i >= 0; --i) text += static_cast<char>(0x80 | (code >> (6 * i) & 0x3F));
  return text;
}

std::vector<char> find_characters(const std::vector<NamedText>& texts) {
  std::vector<char> occurs(kCodePoints, 0);
  for (const NamedText& text : texts) {
    for (size_t at = 0; at < text.content.size();) {
      const uint32_t code = next_code_point(text.content, at);
      if (code == kInvalid) {
        throw DataError(fmt::format(
            "{}: not UTF-8 at byte {} (0x{:02x}); convert it, or use bytes with data.unit=bytes",
            text.name, at, static_cast<uint8_t>(text.content[at])));
      }
      occurs[code] = 1;
    }
  }
  return occurs;
}

// Packs all tokens, then the length of each text and the vocabulary, then the offset of these.
Bytes pack(const std::vector<std::unique_ptr<TextSet>>& sets) {
  std::string rest;
  size_t tokens = 0;
  put(rest, static_cast<uint32_t>(sets.size()));
  for (const auto& set : sets) {
    put(rest, static_cast<uint64_t>(set->tokens.size()));
    tokens += set->tokens.size();
  }
  for (const std::string& text : sets.front()->vocabulary) put_text(rest, text);
  const size_t at = tokens * sizeof(int32_t);
  put(rest, static_cast<uint64_t>(at));
  Bytes packed(at + rest.size());
  auto* out = reinterpret_cast<int32_t*>(packed.data());
  for (const auto& set : sets) out = std::copy(set->tokens.begin(), set->tokens.end(), out);
  std::memcpy(packed.data() + at, rest.data(), rest.size());
  return packed;
}

std::vector<std::unique_ptr<TextSet>> unpack(const Block<uint8_t>& packed) {
  const std::string_view all(reinterpret_cast<const char*>(packed.data()), packed.size());
  const size_t end = all.size() - sizeof(uint64_t);
  const auto begin = Taker(all.substr(end)).take<uint64_t>();
  Taker taker(all.substr(begin, end - begin));
  std::vector<size_t> counts(taker.take<uint32_t>());
  for (size_t& count : counts) count = taker.take<uint64_t>();
  std::vector<std::string> vocabulary;
  while (taker.good() && !taker.at_end()) vocabulary.emplace_back(taker.take_text());
  std::vector<std::unique_ptr<TextSet>> sets;
  size_t at = 0;
  for (const size_t count : counts) {
    const auto tokens = packed.part_as<int32_t>(at * sizeof(int32_t), count);
    sets.push_back(std::make_unique<TextSet>(TextSet{tokens, vocabulary}));
    at += count;
  }
  return sets;
}

}  // namespace

std::vector<std::unique_ptr<TextSet>> tokenize_characters(const std::vector<NamedText>& texts) {
  const std::vector<char> occurs = find_characters(texts);
  std::vector<std::string> vocabulary;
  std::vector<int32_t> token_of(kCodePoints, -1);
  for (uint32_t code = 0; code < kCodePoints; ++code) {
    if (!occurs[code]) continue;
    token_of[code] = static_cast<int32_t>(vocabulary.size());
    vocabulary.push_back(utf8(code));
  }
  std::vector<std::unique_ptr<TextSet>> sets;
  for (const NamedText& text : texts) {
    std::vector<int32_t> tokens;
    tokens.reserve(text.content.size());
    for (size_t at = 0; at < text.content.size();) {
      tokens.push_back(token_of[next_code_point(text.content, at)]);
    }
    sets.push_back(std::make_unique<TextSet>(TextSet{std::move(tokens), vocabulary}));
  }
  return sets;
}

std::vector<std::unique_ptr<TextSet>> tokenize_bytes(const std::vector<NamedText>& texts) {
  std::vector<std::unique_ptr<TextSet>> sets;
  for (const NamedText& text : texts) {
    std::vector<int32_t> tokens;
    tokens.reserve(text.content.size());
    for (const char c : text.content) tokens.push_back(static_cast<uint8_t>(c));
    auto set = std::make_unique<TextSet>();
    set->tokens = std::move(tokens);
    for (int i = 0; i < 256; ++i) set->vocabulary.emplace_back(1, static_cast<char>(i));
    sets.push_back(std::move(set));
  }
  return sets;
}

size_t character_length(std::string_view text, size_t at) {
  size_t end = at;
  next_code_point(text, end);
  return end - at;
}

void visit(config::Visitor& visitor, TextConfig& config) {
  visitor.field({.name = "unit",
                 .help = "tokens are characters or bytes",
                 .choices = {"characters", "bytes"}},
                config.unit);
}

std::unique_ptr<TextParts> read_text(const TextConfig& config, const ReadContext& context) {
  const auto paths = find_part_files("text", context.path, {".txt"});
  auto parts = std::make_unique<TextParts>();
  std::vector<MappedFile> files;
  std::vector<NamedText> texts;
  for (const fs::path& path : paths) {
    if (path.empty()) continue;
    files.emplace_back(path);
    parts->files.push_back(path.string());
    texts.push_back({files.back().bytes(), printable(path.string())});
    if (texts.back().content.empty()) throw DataError(texts.back().name + ": the file is empty");
  }
  const auto tokenize = [&] {
    return config.unit == "bytes" ? tokenize_bytes(texts) : tokenize_characters(texts);
  };
  auto sets =
      context.shared == nullptr
          ? tokenize()
          : unpack(context.shared->content(
                identity_of("text " + config.unit, {parts->files.begin(), parts->files.end()}),
                [&] { return pack(tokenize()); }));
  const std::array<std::unique_ptr<TextSet>*, kParts> slots{&parts->train, &parts->validation,
                                                            &parts->test};
  for (size_t i = 0, next = 0; i < kParts; ++i) {
    if (!paths[i].empty()) *slots[i] = std::move(sets[next++]);
  }
  return parts;
}

}  // namespace gallop::data
