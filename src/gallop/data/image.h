#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace gallop::data {

/// An image in memory: bytes in the order height, width, channels. The buffer is reused between
/// images and only grows.
struct Image {
  int height = 0;
  int width = 0;
  int channels = 0;
  std::vector<uint8_t> pixels;
};

/// What a reader of images is asked for.
struct DecodeRequest {
  int channels = 3;  ///< 1 or 3; gray is repeated, color is turned to gray, alpha is dropped.
  /// Where positive, a JPEG may be decoded at a reduced scale (1/2, 1/4, 1/8) as long as its shorter
  /// side stays at least this long.
  int min_side = 0;
};

/// Images with labels, at random access, safe to use from many threads.
class ImageSet {
 public:
  virtual ~ImageSet() = default;

  virtual int64_t size() const = 0;
  /// In [0, class_names().size()).
  virtual int64_t label(int64_t index) const = 0;
  virtual const std::vector<std::string>& class_names() const = 0;
  /// What a person finds the image by: a path, "shard-0001.tar: cat/17.jpg", "train images, item 17".
  virtual std::string describe(int64_t index) const = 0;
  /// Decodes one image. Throws DataError that names it where it is damaged.
  virtual void read(int64_t index, const DecodeRequest& request, Image& image) const = 0;
  /// Decoded bytes of one image where the whole set lies in memory in one size (then read() gives the
  /// same); null elsewhere.
  virtual const uint8_t* stored_pixels(int64_t /*index*/) const { return nullptr; }
};

}  // namespace gallop::data
