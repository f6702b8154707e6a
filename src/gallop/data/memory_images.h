#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "gallop/data/bytes.h"
#include "gallop/data/image.h"

namespace gallop::data {

class SkipPolicy;

/// Decoded images of one shape, all in memory.
class MemoryImages final : public ImageSet {
 public:
  struct Content {
    ImageShape shape;
    /// Images one after the other, each in height, width, channels order.
    Block<uint8_t> pixels;
    std::string identity{};  ///< ImageSet::identity().
    std::vector<int32_t> labels;
    std::vector<std::string> class_names;
    std::function<std::string(int64_t)> describe;
  };

  /// `pixels` must have labels.size() images, and each label must be below class_names.size().
  explicit MemoryImages(Content content);

  int64_t size() const override { return static_cast<int64_t>(content_.labels.size()); }
  int64_t label(int64_t index) const override {
    return content_.labels[static_cast<size_t>(index)];
  }
  const std::vector<std::string>& class_names() const override { return content_.class_names; }
  std::string describe(int64_t index) const override { return content_.describe(index); }
  void read(int64_t index, const DecodeRequest& request, Image& image) const override;
  std::optional<ImageShape> stored_shape() const override { return content_.shape; }
  const uint8_t* stored_pixels(int64_t index) const override;
  std::string identity() const override { return content_.identity; }

 private:
  Content content_;
  size_t image_bytes_;
};

/// Returns the images with valid labels. Images with invalid labels are reported to `skips`. `item`
/// names an item in messages: "train-labels-idx1-ubyte: item 7".
std::unique_ptr<ImageSet> with_valid_labels(MemoryImages::Content content,
                                            const std::function<std::string(int64_t)>& item,
                                            SkipPolicy& skips);

}  // namespace gallop::data
