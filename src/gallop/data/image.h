#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace gallop::data {

/// A rectangle of whole pixels.
struct Region {
  int top = 0;
  int left = 0;
  int height = 0;
  int width = 0;
};

/// An image in memory: bytes in the order height, width, channels. The buffer is reused between
/// images and only grows.
struct Image {
  int height = 0;
  int width = 0;
  int channels = 0;
  std::vector<uint8_t> pixels;
  /// Where DecodeRequest::region was obeyed, the pixels begin at this row and column of the whole
  /// image (before the first where a turned image was reduced), and each stands for `reduction` x
  /// `reduction` of its pixels.
  int top = 0;
  int left = 0;
  int reduction = 1;
};

/// Says which part of an image is needed, once a reader knows the image's size.
class RegionChooser {
 public:
  virtual ~RegionChooser() = default;
  /// A part of the image of `height` x `width` pixels; called at most once an image.
  virtual Region choose(int height, int width) = 0;
};

/// What a reader of images is asked for.
struct DecodeRequest {
  /// 1 or 3: gray is repeated, color is turned to gray, alpha is dropped. 0: as the image has it.
  int channels = 3;
  /// Where positive, a JPEG may be decoded at a reduced scale (1/2, 1/4, 1/8) as long as its
  /// shorter side (that of the region, if one is chosen) stays at least this long.
  int min_side = 0;
  /// A reader may ask it and decode no more than that part; one that does not gives the whole
  /// image.
  RegionChooser* region = nullptr;
  /// Whether the image is turned as its EXIF orientation says.
  bool orient = true;
};

struct ImageShape {
  int height = 0;
  int width = 0;
  int channels = 0;

  bool operator==(const ImageShape&) const = default;
};

/// What a file says of an image before its pixels.
struct ImageHeader {
  ImageShape shape;     ///< As DecodeRequest::channels = 0 gives it.
  int orientation = 1;  ///< The EXIF orientation that it is turned by, 1 to 8.
};

/// Images with labels, at random access, safe to use from many threads.
class ImageSet {
 public:
  virtual ~ImageSet() = default;

  virtual int64_t size() const = 0;
  /// In [0, class_names().size()).
  virtual int64_t label(int64_t index) const = 0;
  virtual const std::vector<std::string>& class_names() const = 0;
  /// What a person finds the image by: a path, "shard-0001.tar: cat/17.jpg", "train images, item
  /// 17".
  virtual std::string describe(int64_t index) const = 0;
  /// Decodes one image. Throws DataError that names it where it is damaged.
  virtual void read(int64_t index, const DecodeRequest& request, Image& image) const = 0;
  /// What read() would give, without decoding where the format allows that. Throws DataError that
  /// names the image where it is damaged that far.
  virtual ImageHeader header(int64_t index) const;
  /// Shape of every image where the whole set lies decoded in memory in one shape; empty elsewhere.
  virtual std::optional<ImageShape> stored_shape() const { return std::nullopt; }
  /// Bytes of one image in stored_shape(), what read() gives for that number of channels; null
  /// where that is empty.
  virtual const uint8_t* stored_pixels(int64_t /*index*/) const { return nullptr; }

  /// What the images are, so that processes can share what they decode: where it is equal, index
  /// origin(i) is the same file. Empty where there is nothing to share.
  virtual std::string identity() const { return {}; }
  /// Stands for the present state of the file of one image.
  virtual uint64_t stamp(int64_t /*index*/) const { return 0; }
  /// A part of another set has that one's identity, indices and number of images here.
  virtual int64_t origin(int64_t index) const { return index; }
  virtual int64_t origins() const { return size(); }
};

}  // namespace gallop::data
