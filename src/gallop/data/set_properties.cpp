#include "gallop/data/set_properties.h"

#include <array>

#include <fmt/format.h>

#include "gallop/base/error.h"
#include "gallop/base/text.h"
#include "gallop/data/image_shaper.h"

namespace gallop::data {

namespace {

struct SummarizedPart {
  const ImageSet* images;
  ImageSummary summary;
};

// The combined properties of all splits of a set.
class SetProperties {
 public:
  SetProperties(const ImageParts& parts, int threads, const SummaryCache& cache) {
    for (const ImageSet* images : {parts.train.get(), parts.validation.get(), parts.test.get()}) {
      if (images == nullptr) continue;
      parts_.push_back({images, cached_summary(*images, threads, cache)});
      const ImageSummary& part = parts_.back().summary;
      total_.images += part.images;
      total_.gray += part.gray;
      total_.color += part.color;
      total_.turned += part.turned;
      total_.unreadable += part.unreadable;
    }
  }

  // Throws or adds notes if images cannot be read.
  void check_readable(bool skips, std::vector<std::string>& notes) const {
    const SummarizedPart& train = parts_.front();
    if (train.summary.height == 0) {
      const std::string reason =
          train.summary.images == 0 ? "it is empty" : error_of(*train.images, 0);
      throw DataError(fmt::format("none of the data set's images can be read: {}", reason));
    }
    for (const SummarizedPart& part : parts_) {
      if (part.summary.unreadable == 0) continue;
      const SkipCount unreadable{.reason = "image that cannot be read",
                                 .count = total_.unreadable,
                                 .first = error_of(*part.images, part.summary.first_unreadable)};
      Skips all;
      all.add(unreadable);
      if (!skips) all.throw_first();
      notes.push_back(describe(unreadable));
      return;
    }
  }

  ImageShape shape() const {
    const ImageSummary& train = parts_.front().summary;
    return {.height = static_cast<int>(train.height),
            .width = static_cast<int>(train.width),
            .channels = total_.color > 0 ? 3 : 1};
  }

  void check_same_size() const {
    const ImageSummary& first = parts_.front().summary;
    int64_t others = 0, example = -1;
    const ImageSet* of = nullptr;
    for (const SummarizedPart& part : parts_) {
      const ImageSummary& here = part.summary;
      if (here.height == 0) continue;
      const bool same = here.height == first.height && here.width == first.width;
      others += same ? here.other_size : here.images - here.unreadable - here.other_size;
      if (of != nullptr || (same && here.other_size == 0)) continue;
      of = part.images;
      example = same ? here.first_other_size : first_readable(*part.images);
    }
    if (of == nullptr) return;
    const ImageShape other = of->header(example).shape;
    throw ShapeError(fmt::format(
        "{}: is {} x {} pixels (height x width) where the first image has {} x {}, and {} of {} "
        "images differ from it; set data.image_size to bring all images to one size",
        of->describe(example), other.height, other.width, first.height, first.width,
        format_count(others), format_count(total_.images)));
  }

  void note_conversions(int channels, bool is_asked, std::vector<std::string>& notes) const {
    const bool is_mixed = total_.gray > 0 && total_.color > 0;
    if (is_mixed && channels == 1) {
      notes.push_back(
          fmt::format("{} of {} images are in color and converted to gray, as "
                      "data.channels is 1; the first: {}",
                      format_count(total_.color), format_count(total_.images), first_color()));
    } else if (is_mixed && !is_asked && total_.color < total_.gray) {
      notes.push_back(fmt::format(
          "{} of {} images are in color, the first: {}; so the {} gray ones are converted to color "
          "(data.channels=1 converts all to gray)",
          format_count(total_.color), format_count(total_.images), first_color(),
          format_count(total_.gray)));
    } else if (is_mixed) {
      notes.push_back(fmt::format("{} of {} images are gray and converted to color",
                                  format_count(total_.gray), format_count(total_.images)));
    }
    if (total_.turned > 0) {
      notes.push_back(fmt::format(
          "{} of {} images are turned by their EXIF orientation (data.exif_orientation=ignore "
          "leaves them as stored)",
          format_count(total_.turned), format_count(total_.images)));
    }
  }

 private:
  static std::string error_of(const ImageSet& images, int64_t index) {
    try {
      images.header(index);
    } catch (const DataError& error) {
      return error.what();
    }
    return images.describe(index) + ": could not be read at first";
  }

  static int64_t first_readable(const ImageSet& images) {
    for (int64_t i = 0;; ++i) {
      try {
        images.header(i);
        return i;
      } catch (const DataError&) {
        if (i + 1 == images.size()) throw;
      }
    }
  }

  std::string first_color() const {
    for (const SummarizedPart& part : parts_) {
      if (part.summary.first_color >= 0) return part.images->describe(part.summary.first_color);
    }
    return {};
  }

  std::vector<SummarizedPart> parts_;
  ImageSummary total_;
};

}  // namespace

ImageShape shape_of_set(const ImageParts& parts, const DataConfig& config, int threads,
                        const SummaryCache& cache, std::vector<std::string>& notes) {
  const SetProperties properties(parts, threads, cache);
  properties.check_readable(config.on_error == "skip", notes);
  ImageShape shape = properties.shape();
  if (config.image_size > 0) {
    shape.height = shape.width = static_cast<int>(config.image_size);
  } else {
    properties.check_same_size();
  }
  if (config.channels > 0) shape.channels = static_cast<int>(config.channels);
  properties.note_conversions(shape.channels, config.channels > 0, notes);
  return shape;
}

}  // namespace gallop::data
