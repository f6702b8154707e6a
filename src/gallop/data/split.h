#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "gallop/data/dataset.h"

namespace gallop::data {

/// Some images of another set, in a given order.
class SubsetImages final : public ImageSet {
 public:
  /// `indices` are images of `images`.
  SubsetImages(std::shared_ptr<const ImageSet> images, std::vector<int64_t> indices)
      : images_(std::move(images)), indices_(std::move(indices)) {}

  int64_t size() const override { return static_cast<int64_t>(indices_.size()); }
  int64_t label(int64_t index) const override { return images_->label(at(index)); }
  const std::vector<std::string>& class_names() const override { return images_->class_names(); }
  std::string describe(int64_t index) const override { return images_->describe(at(index)); }
  void read(int64_t index, const DecodeRequest& request, Image& image) const override {
    images_->read(at(index), request, image);
  }
  std::optional<ImageShape> stored_shape() const override { return images_->stored_shape(); }
  const uint8_t* stored_pixels(int64_t index) const override {
    return images_->stored_pixels(at(index));
  }

 private:
  int64_t at(int64_t index) const { return indices_[static_cast<size_t>(index)]; }

  std::shared_ptr<const ImageSet> images_;
  std::vector<int64_t> indices_;
};

/// The two sides of a cut, each in ascending order.
struct Cut {
  std::vector<int64_t> kept;
  std::vector<int64_t> held_back;
};

/// Holds back `fraction` (0 to 1, exclusive) of every class, rounded, and leaves each class at least
/// one. Which ones depends on (seed, class, number of its images) only.
Cut cut_by_class(const std::vector<int64_t>& labels, int64_t classes, double fraction,
                 uint64_t seed);

/// Where the data have no validation part, cuts one from the training part: images by class, a text
/// at its end. Throws DataError where that leaves a side empty.
void hold_back_validation(Parts& parts, double fraction, uint64_t seed);

}  // namespace gallop::data
