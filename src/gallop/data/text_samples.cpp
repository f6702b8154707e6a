#include "gallop/data/text_samples.h"

#include <algorithm>

#include <fmt/format.h>

#include "gallop/base/error.h"
#include "gallop/base/philox.h"
#include "gallop/base/text.h"

namespace gallop::data {

namespace {

int64_t token_count(const TextSet& text) { return static_cast<int64_t>(text.tokens.size()); }

Fields token_fields(int64_t context) {
  const RowShape shape{.sizes = {context}, .dtype = c10::ScalarType::Long};
  return {{.name = "tokens", .shape = shape}, {.name = "labels", .shape = shape}};
}

}  // namespace

TextWindows::TextWindows(const TextSet& text, int64_t context, uint64_t seed)
    : Samples(token_fields(context)), text_(text), context_(context), seed_(seed) {
  const int64_t tokens = token_count(text);
  if (tokens <= context) {
    throw DataError(fmt::format(
        "the training text has {} tokens, and a context of {} needs one more than that; make "
        "data.context smaller",
        format_count(tokens), format_count(context)));
  }
  size_ = std::max<int64_t>(1, tokens / context - 1);
  offsets_ = std::min(context, tokens - size_ * context);
}

bool TextWindows::fill(int64_t index, int64_t epoch, const SampleRow& row, Scratch&) const {
  Philox random(seed_, Purpose::kWindow, static_cast<uint64_t>(epoch), 0);
  const auto offset = static_cast<int64_t>(random.below(static_cast<uint64_t>(offsets_)));
  const int32_t* tokens = text_.tokens.data() + offset + index * context_;
  std::copy_n(tokens, context_, row.as<int64_t>(0));
  std::copy_n(tokens + 1, context_, row.as<int64_t>(1));
  return true;
}

TextEvaluation::TextEvaluation(const TextSet& text, int64_t context, int64_t stride)
    : Samples(token_fields(context)),
      text_(text),
      context_(context),
      stride_(stride == 0 ? context : stride) {
  if (stride_ < 0 || stride_ > context) {
    throw UsageError(fmt::format("data.eval_stride is {}, and must be at most data.context, {}",
                                 stride, context));
  }
  const int64_t predicted = token_count(text) - 1;
  if (predicted < 1) throw DataError("the text to evaluate on has fewer than two tokens");
  const int64_t beyond_first = std::max<int64_t>(0, predicted - context);
  size_ = 1 + (beyond_first + stride_ - 1) / stride_;
}

bool TextEvaluation::fill(int64_t index, int64_t, const SampleRow& row, Scratch&) const {
  const int64_t predicted = token_count(text_) - 1;
  // The last window is moved back to end with the text, so that its tokens have more context.
  const int64_t begin = std::max<int64_t>(0, std::min(index * stride_, predicted - context_));
  const int64_t available = std::min(context_, predicted - begin);
  const int64_t ignored = index == 0 ? 0 : context_ + (index - 1) * stride_ - begin;

  auto* const input = row.as<int64_t>(0);
  auto* const target = row.as<int64_t>(1);
  const int32_t* tokens = text_.tokens.data() + begin;
  std::copy_n(tokens, available, input);
  std::fill(input + available, input + context_, 0);
  std::fill_n(target, ignored, kIgnoredTarget);
  std::copy(tokens + 1 + ignored, tokens + 1 + available, target + ignored);
  std::fill(target + available, target + context_, kIgnoredTarget);
  return true;
}

}  // namespace gallop::data
