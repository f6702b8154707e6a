#include "gallop/data/token_rows.h"

#include <algorithm>

#include <fmt/format.h>

namespace gallop::data {

void TokenRows::add(std::span<const int32_t> tokens, int64_t line, size_t file) {
  const auto most = static_cast<size_t>(context_);
  if (tokens.size() > most) {
    ++cut_;
    tokens = tokens.first(most);
  }
  begins_.push_back(tokens_.size());
  lines_.push_back(line);
  file_of_.push_back(static_cast<uint32_t>(file));
  tokens_.insert(tokens_.end(), tokens.begin(), tokens.end());
}

std::span<const int32_t> TokenRows::operator[](int64_t index) const {
  const auto i = static_cast<size_t>(index);
  const size_t end = i + 1 < begins_.size() ? begins_[i + 1] : tokens_.size();
  return std::span(tokens_).subspan(begins_[i], end - begins_[i]);
}

int64_t TokenRows::count(int64_t token) const {
  return std::count(tokens_.begin(), tokens_.end(), token);
}

std::string TokenRows::describe(int64_t index) const {
  const auto i = static_cast<size_t>(index);
  return fmt::format("{}:{}", files_[file_of_[i]], lines_[i]);
}

Field ragged_tokens(std::string name, FieldRole role, int64_t context, int64_t padding) {
  return {.name = std::move(name),
          .role = role,
          .shape = {.sizes = {context}, .dtype = c10::ScalarType::Long},
          .padding = static_cast<double>(padding)};
}

}  // namespace gallop::data
