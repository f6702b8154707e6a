#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "gallop/config/visitor.h"
#include "gallop/data/signature.h"

namespace gallop::data {

/// Pads short texts to the longest of a batch. It is outside of every vocabulary, so that a model
/// that does not handle padding fails.
inline constexpr int64_t kPaddingToken = -1;
/// The unknown token, first in every vocabulary of separate texts, for units not in the vocabulary.
inline constexpr int64_t kUnknownToken = 0;

/// How separate texts are split into tokens, and which units the vocabulary contains.
struct TokenizerConfig {
  std::string unit = "characters";  ///< characters, bytes or words.
  int64_t min_count = 1;            ///< Less frequent units are not in the vocabulary.
};

void visit(config::Visitor& visitor, TokenizerConfig& config);

/// Splits a text into UTF-8 characters, bytes, or words separated by blanks. Throws DataError ("not
/// UTF-8 at byte 3 (0xff)") if characters are requested and the text is not UTF-8.
std::vector<std::string_view> split_units(const std::string& unit, std::string_view text);

/// Builds a vocabulary by counting the units of the training texts.
class VocabularyBuilder {
 public:
  explicit VocabularyBuilder(TokenizerConfig config);

  void add(std::string_view unit) { ++counts_[std::string(unit)]; }
  /// Returns "[unknown word]", then the units that occur at least min_count times, sorted bytewise;
  /// for bytes, all 256.
  std::vector<std::string> vocabulary() const;

 private:
  TokenizerConfig config_;
  std::map<std::string, int64_t, std::less<>> counts_;
};

/// The tokens of a vocabulary, decoded to bytes.
std::vector<std::string> vocabulary_of(const Signature& signature);

/// Completes a signature of an older version, which declares neither unit nor padding. Separate
/// texts are padded and have a vocabulary that begins with the unknown token of their unit.
void complete_undeclared(Signature& signature);

/// Converts texts to tokens of a vocabulary.
class Tokenizer {
 public:
  /// `vocabulary` is a result of VocabularyBuilder::vocabulary().
  Tokenizer(std::string unit, const std::vector<std::string>& vocabulary);
  /// The tokenizer that a model was trained with.
  explicit Tokenizer(const Signature& signature);

  const std::string& unit() const { return unit_; }
  /// The token of a unit; kUnknownToken if it is not in the vocabulary.
  int32_t token_of(std::string_view unit) const;
  /// The tokens of all units of a text. Throws like split_units().
  std::vector<int32_t> tokens_of(std::string_view text) const;

 private:
  std::string unit_;
  std::map<std::string, int32_t, std::less<>> tokens_;
};

}  // namespace gallop::data
