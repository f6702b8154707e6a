#pragma once

#include <algorithm>
#include <vector>

#include "gallop/base/philox.h"
#include "gallop/data/samples.h"

namespace gallop::data {

/// Texts of random tokens and lengths, a function of the index. Each label is the next token.
class RandomTexts final : public Samples {
 public:
  RandomTexts(int64_t size, int64_t context, int64_t vocabulary)
      : Samples({{.name = "tokens", .shape = {{context}, c10::kLong}, .padding = -1},
                 {.name = "labels", .shape = {{context}, c10::kLong}, .padding = -100}}),
        size_(size),
        context_(context),
        vocabulary_(vocabulary) {}

  int64_t size() const override { return size_; }
  bool fill(int64_t index, int64_t, const SampleRow& row, Scratch&) const override {
    Philox random(1, Purpose::kWindow, 0, static_cast<uint64_t>(index));
    const auto draw = [&](int64_t most) {
      return static_cast<int64_t>(random.below(static_cast<uint64_t>(most)));
    };
    const int64_t length = 1 + draw(context_);
    for (int64_t t = 0, next = draw(vocabulary_); t < length; ++t) {
      row.as<int64_t>(0)[t] = next;
      row.as<int64_t>(1)[t] = next = draw(4) == 0 ? draw(vocabulary_) : (next + 1) % vocabulary_;
    }
    row.set_length(0, length);
    row.set_length(1, length);
    return true;
  }

 private:
  int64_t size_, context_, vocabulary_;
};

}  // namespace gallop::data
