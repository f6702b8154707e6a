#include "gallop/data/tokenizer.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include <fmt/format.h>

#include "gallop/base/error.h"
#include "gallop/data/text.h"

namespace gallop::data {

namespace {

constexpr std::string_view kBlanks = " \t\r\n\v\f";
constexpr int kBytes = 256;

constexpr const char* kUnits[] = {"characters", "bytes", "words"};

// "[unknown word]"
std::string unknown_token(std::string unit) {
  unit.pop_back();
  return "[unknown " + unit + "]";
}

}  // namespace

void visit(config::Visitor& visitor, TokenizerConfig& config) {
  visitor.field({.name = "unit",
                 .help = "tokens are characters, bytes, or words between blanks",
                 .choices = {std::begin(kUnits), std::end(kUnits)}},
                config.unit);
  visitor.field({.name = "min_count",
                 .help = "minimum number of occurrences in the training texts for a character or "
                         "word to have its own token",
                 .min = 1},
                config.min_count);
}

std::vector<std::string_view> split_units(const std::string& unit, std::string_view text) {
  std::vector<std::string_view> units;
  if (unit == "words") {
    for (size_t at = text.find_first_not_of(kBlanks); at < text.size();) {
      const size_t end = std::min(text.find_first_of(kBlanks, at), text.size());
      units.push_back(text.substr(at, end - at));
      at = text.find_first_not_of(kBlanks, end);
    }
    return units;
  }
  for (size_t at = 0; at < text.size();) {
    const size_t length = unit == "bytes" ? 1 : character_length(text, at);
    if (length == 0) {
      throw DataError(fmt::format("not UTF-8 at byte {} (0x{:02x}); convert it", at,
                                  static_cast<uint8_t>(text[at])));
    }
    units.push_back(text.substr(at, length));
    at += length;
  }
  return units;
}

VocabularyBuilder::VocabularyBuilder(TokenizerConfig config) : config_(std::move(config)) {
  if (config_.unit != "bytes") return;
  if (config_.min_count > 1) {
    throw UsageError(
        "data.min_count applies to characters and words, but data.unit is bytes, and every byte "
        "has a token; leave data.min_count out");
  }
  for (int i = 0; i < kBytes; ++i) counts_[std::string(1, static_cast<char>(i))] = 1;
}

std::vector<std::string> VocabularyBuilder::vocabulary() const {
  std::vector<std::string> vocabulary = {unknown_token(config_.unit)};
  for (const auto& [unit, count] : counts_) {
    if (count >= config_.min_count) vocabulary.push_back(unit);
  }
  return vocabulary;
}

std::vector<std::string> vocabulary_of(const Signature& signature) {
  std::vector<std::string> tokens;
  tokens.reserve(signature.vocabulary.size());
  for (const std::string& token : signature.vocabulary) tokens.push_back(from_hex(token));
  return tokens;
}

void complete_undeclared(Signature& signature) {
  if (!signature.is_text() || signature.vocabulary.empty()) return;
  const std::string first = from_hex(signature.vocabulary.front());
  for (const char* const unit : kUnits) {
    if (first != unknown_token(unit)) continue;
    signature.unit = unit;
    signature.separate_texts = true;
    signature.padded = true;
  }
}

Tokenizer::Tokenizer(std::string unit, const std::vector<std::string>& vocabulary)
    : unit_(std::move(unit)) {
  // The unknown token does not occur in texts.
  for (size_t i = kUnknownToken + 1; i < vocabulary.size(); ++i) {
    tokens_[vocabulary[i]] = static_cast<int32_t>(i);
  }
}

Tokenizer::Tokenizer(const Signature& signature)
    : Tokenizer(signature.unit, vocabulary_of(signature)) {}

int32_t Tokenizer::token_of(std::string_view unit) const {
  const auto found = tokens_.find(unit);
  return found == tokens_.end() ? static_cast<int32_t>(kUnknownToken) : found->second;
}

std::vector<int32_t> Tokenizer::tokens_of(std::string_view text) const {
  std::vector<int32_t> tokens;
  for (const std::string_view unit : split_units(unit_, text)) tokens.push_back(token_of(unit));
  return tokens;
}

}  // namespace gallop::data
