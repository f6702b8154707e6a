#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "gallop/data/image.h"

namespace gallop::data {

/// Images with their targets in memory: a class each, or numbers to predict.
class LabeledImages : public ImageSet {
 public:
  explicit LabeledImages(std::vector<std::string> class_names, int64_t target_size = 0)
      : class_names_(std::move(class_names)), target_size_(target_size) {}

  int64_t size() const override { return static_cast<int64_t>(labels_.size()); }
  int64_t label(int64_t index) const override { return labels_[static_cast<size_t>(index)]; }
  const std::vector<std::string>& class_names() const override { return class_names_; }
  int64_t target_size() const override { return target_size_; }
  const float* targets(int64_t index) const override {
    return target_size_ == 0 ? nullptr : numbers_.data() + index * target_size_;
  }

 protected:
  /// Appends the target of the next image; `numbers` has target_size() elements.
  void add_target(int32_t label, std::span<const float> numbers) {
    labels_.push_back(label);
    numbers_.insert(numbers_.end(), numbers.begin(), numbers.end());
  }

 private:
  std::vector<std::string> class_names_;
  int64_t target_size_;
  std::vector<int32_t> labels_;
  std::vector<float> numbers_;
};

}  // namespace gallop::data
