#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "gallop/data/samples.h"

namespace gallop::data {

/// The tokenized texts of a file or its shards, concatenated, each truncated to `context` tokens.
class TokenRows {
 public:
  TokenRows(std::vector<std::string> files, int64_t context)
      : files_(std::move(files)), context_(context) {}

  void add(std::span<const int32_t> tokens, int64_t line, size_t file = 0);

  int64_t size() const { return static_cast<int64_t>(lines_.size()); }
  std::span<const int32_t> operator[](int64_t index) const;
  /// Returns the source of a text: "reviews.csv:17".
  std::string describe(int64_t index) const;

  const std::string& file() const { return files_.front(); }
  int64_t context() const { return context_; }
  int64_t tokens() const { return static_cast<int64_t>(tokens_.size()); }
  int64_t count(int64_t token) const;   ///< Occurrences of a token.
  int64_t cut() const { return cut_; }  ///< Number of truncated texts.

 private:
  std::vector<std::string> files_;
  int64_t context_, cut_ = 0;
  std::vector<int32_t> tokens_;
  std::vector<size_t> begins_;
  std::vector<int64_t> lines_;
  std::vector<uint32_t> file_of_;
};

/// A ragged field of up to `context` tokens, int64, padded with `padding`.
Field ragged_tokens(std::string name, FieldRole role, int64_t context, int64_t padding);

}  // namespace gallop::data
