#include <algorithm>
#include <cstring>
#include <utility>

#include <fmt/format.h>

#include "gallop/base/error.h"
#include "gallop/base/philox.h"
#include "gallop/data/channels.h"
#include "gallop/data/image.h"
#include "gallop/data/readers.h"

namespace gallop::data {

namespace {

constexpr int64_t kLargestSide = 1 << 14;

/// Images that are drawn when they are read: the same at each read.
class RandomImages final : public ImageSet {
 public:
  RandomImages(std::string part, uint64_t seed, int64_t size, ImageShape shape, int64_t classes)
      : part_(std::move(part)), seed_(seed), size_(size), shape_(shape) {
    for (int64_t i = 0; i < classes; ++i) class_names_.push_back(fmt::format("class-{}", i));
  }

  int64_t size() const override { return size_; }
  int64_t label(int64_t index) const override {
    return static_cast<int64_t>(stream(kLabels, index).below(class_names_.size()));
  }
  const std::vector<std::string>& class_names() const override { return class_names_; }
  std::string describe(int64_t index) const override {
    return fmt::format("{} images, item {}", part_, index);
  }

  void read(int64_t index, const DecodeRequest& request, Image& image) const override {
    const int channels = request.channels == 0 ? shape_.channels : request.channels;
    Image stored;
    Image& drawn = channels == shape_.channels ? image : stored;
    set_size(drawn, shape_.height, shape_.width, shape_.channels);
    const int64_t pixels = int64_t{shape_.height} * shape_.width;
    const auto bytes = static_cast<size_t>(pixels * shape_.channels);
    Philox random = stream(kPixels, index);
    for (size_t i = 0; i < bytes; i += sizeof(uint32_t)) {
      const uint32_t word = random();
      std::memcpy(drawn.pixels.data() + i, &word, std::min(sizeof(word), bytes - i));
    }
    if (&drawn == &image) return;
    set_size(image, shape_.height, shape_.width, channels);
    convert_channels(drawn.pixels.data(), shape_.channels, image.pixels.data(), channels, pixels);
  }
  ImageHeader header(int64_t /*index*/) const override { return {.shape = shape_}; }

 private:
  static constexpr uint64_t kLabels = 0, kPixels = 1;
  Philox stream(uint64_t what, int64_t index) const {
    return Philox(seed_, Purpose::kSample, what, static_cast<uint64_t>(index));
  }

  std::string part_;
  uint64_t seed_;
  int64_t size_;
  ImageShape shape_;
  std::vector<std::string> class_names_;
};

ImageShape shape_of(const FakeImagesConfig& config) {
  const auto& shape = config.shape;
  if (shape.size() != 3 || (shape[0] != 1 && shape[0] != 3)) {
    throw UsageError(
        "data.shape of fake-images is [channels, height, width], with 1 or 3 channels, such as "
        "[3, 224, 224]");
  }
  return {.height = static_cast<int>(shape[1]),
          .width = static_cast<int>(shape[2]),
          .channels = static_cast<int>(shape[0])};
}

}  // namespace

void visit(config::Visitor& visitor, FakeImagesConfig& config) {
  visitor.field({.name = "samples",
                 .help = "number of training images; the test split has a fifth as many",
                 .min = 5},
                config.samples);
  visitor.field({.name = "shape",
                 .help = "channels, height and width of an image",
                 .min = 1,
                 .max = kLargestSide},
                config.shape);
  visitor.field({.name = "classes", .help = "number of classes", .min = 2, .max = 100000},
                config.classes);
}

std::unique_ptr<ImageParts> read_fake_images(const FakeImagesConfig& config,
                                             const ReadContext& context) {
  if (!context.path.empty()) {
    throw UsageError("data.path: fake-images reads no files; omit it, or use folder");
  }
  const ImageShape shape = shape_of(config);
  auto parts = std::make_unique<ImageParts>();
  parts->train =
      std::make_unique<RandomImages>("training", 1, config.samples, shape, config.classes);
  parts->test =
      std::make_unique<RandomImages>("test", 2, config.samples / 5, shape, config.classes);
  return parts;
}

}  // namespace gallop::data
