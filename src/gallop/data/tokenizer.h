#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "gallop/config/visitor.h"
#include "gallop/data/signature.h"

namespace gallop::data {

/// What fills short texts up to the longest of a batch. It is none of the vocabulary, so that a
/// model that does not tell padding from tokens fails.
inline constexpr int64_t kPaddingToken = -1;
/// The first token of every vocabulary of separate texts: any unit that is not in it.
inline constexpr int64_t kUnknownToken = 0;

/// How separate texts are split into tokens, and which of them the vocabulary has.
struct TokenizerConfig {
  std::string unit = "characters";  ///< characters, bytes or words.
  int64_t min_count = 1;  ///< Rarer units of the training texts are not in the vocabulary.
};

void visit(config::Visitor& visitor, TokenizerConfig& config);

/// The UTF-8 characters of a text, its bytes, or its words, which blanks separate. Throws DataError
/// ("not UTF-8 at byte 3 (0xff)") where characters are asked for and the text is not UTF-8.
std::vector<std::string_view> split_units(const std::string& unit, std::string_view text);

/// Counts the units of the training texts.
class VocabularyBuilder {
 public:
  explicit VocabularyBuilder(TokenizerConfig config);

  void add(std::string_view unit) { ++counts_[std::string(unit)]; }
  /// "[unknown word]", then the units that occur often enough, sorted by their bytes; of bytes all
  /// 256.
  std::vector<std::string> vocabulary() const;

 private:
  TokenizerConfig config_;
  std::map<std::string, int64_t, std::less<>> counts_;
};

/// The tokens of a vocabulary as bytes.
std::vector<std::string> vocabulary_of(const Signature& signature);

/// Completes the signature of a run of a version that declared no unit and no padding: separate
/// texts have a vocabulary that begins with the unknown token of their unit, and are padded.
void complete_undeclared(Signature& signature);

/// Turns texts into tokens of a vocabulary.
class Tokenizer {
 public:
  /// `vocabulary` as VocabularyBuilder makes it.
  Tokenizer(std::string unit, const std::vector<std::string>& vocabulary);
  /// As a model was trained with.
  explicit Tokenizer(const Signature& signature);

  const std::string& unit() const { return unit_; }
  /// kUnknownToken where the vocabulary does not have it.
  int32_t token_of(std::string_view unit) const;
  /// Of all units of a text. Throws as split_units().
  std::vector<int32_t> tokens_of(std::string_view text) const;

 private:
  std::string unit_;
  std::map<std::string, int32_t, std::less<>> tokens_;
};

}  // namespace gallop::data
