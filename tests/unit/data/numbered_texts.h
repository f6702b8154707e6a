#pragma once

#include <algorithm>
#include <set>
#include <vector>

#include "gallop/base/philox.h"
#include "gallop/data/samples.h"

namespace gallop::data {

/// Texts of random lengths, whose tokens are their index. The label of token t is the index + 1000
/// t, or with `one_target` the index.
class NumberedTexts final : public Samples {
 public:
  NumberedTexts(int64_t size, int64_t context, int64_t most_length = 0, bool one_target = false)
      : Samples(fields_of(context, one_target)), one_target_(one_target) {
    Philox random(1, Purpose::kWindow, 0, 0);
    const int64_t most = most_length > 0 ? most_length : context;
    for (int64_t i = 0; i < size; ++i) {
      lengths_.push_back(1 + static_cast<int64_t>(random.below(static_cast<uint64_t>(most))));
    }
  }

  int64_t size() const override { return static_cast<int64_t>(lengths_.size()); }
  int64_t length(int64_t index) const { return lengths_[static_cast<size_t>(index)]; }
  bool fill(int64_t index, int64_t, const SampleRow& row, Scratch&) const override {
    if (broken.contains(index)) return false;
    std::fill_n(row.as<int64_t>(0), length(index), index);
    row.set_length(0, length(index));
    if (one_target_) {
      *row.as<int64_t>(1) = index;
      return true;
    }
    for (int64_t t = 0; t < length(index); ++t) row.as<int64_t>(1)[t] = index + 1000 * t;
    row.set_length(1, length(index));
    return true;
  }

  std::set<int64_t> broken;

 private:
  static Fields fields_of(int64_t context, bool one_target) {
    const RowShape tokens{.sizes = {context}, .dtype = c10::kLong};
    Field target{.name = "labels", .shape = tokens, .padding = -100};
    if (one_target) target = {.name = "label", .shape = {{}, c10::kLong}};
    return {{.name = "tokens", .shape = tokens, .padding = -1}, target};
  }

  std::vector<int64_t> lengths_;
  bool one_target_;
};

}  // namespace gallop::data
