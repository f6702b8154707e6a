#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace gallop::data {

/// A rectangle in whole pixels.
struct Region {
  int top = 0;
  int left = 0;
  int height = 0;
  int width = 0;
};

/// An image in memory: bytes in height, width, channels order. The buffer is reused between images
/// and only grows.
struct Image {
  int height = 0;
  int width = 0;
  int channels = 0;
  std::vector<uint8_t> pixels;
  /// If DecodeRequest::region was applied: the position of the pixels in the whole image (which may
  /// be before the first row or column if a rotated image was reduced), and `reduction`, where each
  /// pixel represents `reduction` x `reduction` original pixels.
  int top = 0;
  int left = 0;
  int reduction = 1;
};

/// Chooses the region of an image to decode once a reader knows the image's size.
class RegionChooser {
 public:
  virtual ~RegionChooser() = default;
  /// The region of an image of `height` x `width` pixels; called at most once per image.
  virtual Region choose(int height, int width) = 0;
};

/// Options for decoding an image.
struct DecodeRequest {
  /// 1 or 3: gray is repeated, color becomes gray, alpha is dropped. 0: the channels as stored.
  int channels = 3;
  /// If positive, a JPEG may be decoded at a reduced scale (1/2, 1/4, 1/8) as long as the shorter
  /// side of the image (or of the chosen region) is at least this long.
  int min_side = 0;
  /// If not null, a reader may decode only the region it chooses; it may also ignore it.
  RegionChooser* region = nullptr;
  /// For masks: the indices of palettes instead of their colors, and grays of fewer than 8 bits as
  /// they are, instead of scaled to 255. Images with indices have one channel.
  bool indices = false;
  /// Whether to rotate the image according to its EXIF orientation.
  bool orient = true;
};

struct ImageShape {
  int height = 0;
  int width = 0;
  int channels = 0;

  bool operator==(const ImageShape&) const = default;
};

/// The header of an image file.
struct ImageHeader {
  ImageShape shape;     ///< As decoded with DecodeRequest::channels = 0.
  int orientation = 1;  ///< The EXIF orientation that is applied, 1 to 8.
};

/// Labeled images with random access. Thread-safe.
class ImageSet {
 public:
  virtual ~ImageSet() = default;

  virtual int64_t size() const = 0;
  /// The class index, in [0, class_names().size()).
  virtual int64_t label(int64_t index) const = 0;
  virtual const std::vector<std::string>& class_names() const = 0;
  /// The count of numbers to predict of each image, of regression and multi-label classification;
  /// 0: the target is label().
  virtual int64_t target_size() const { return 0; }
  virtual const float* targets(int64_t /*index*/) const { return nullptr; }
  /// A name by which the user can find the image: a path, "shard-0001.tar: cat/17.jpg", "train
  /// images, item 17".
  virtual std::string describe(int64_t index) const = 0;
  /// Decodes one image. Throws DataError that names the image if it is damaged.
  virtual void read(int64_t index, const DecodeRequest& request, Image& image) const = 0;
  /// The shape that read() would return, without decoding if the format allows it. Throws DataError
  /// that names the image if its header is damaged.
  virtual ImageHeader header(int64_t index) const;
  /// The common shape of all images if the whole set is decoded in memory; otherwise nullopt.
  virtual std::optional<ImageShape> stored_shape() const { return std::nullopt; }
  /// Pixels of one image in stored_shape(), as read() returns them for that number of channels;
  /// null if stored_shape() is nullopt.
  virtual const uint8_t* stored_pixels(int64_t /*index*/) const { return nullptr; }

  /// Samples::window_blocks() and block() of the samples of these images.
  virtual int64_t window_blocks() const { return 0; }
  virtual int64_t block(int64_t /*index*/) const { return 0; }

  /// Identifies the images so that processes can share decoded ones: for equal identities, index
  /// origin(i) is the same file. Empty if nothing can be shared.
  virtual std::string identity() const { return {}; }
  /// A stamp of the current state of the file that contains the image.
  virtual uint64_t stamp(int64_t /*index*/) const { return 0; }
  /// The index in, and the size of, the original set, which differ for a subset of another set.
  virtual int64_t origin(int64_t index) const { return index; }
  virtual int64_t origins() const { return size(); }
};

}  // namespace gallop::data
