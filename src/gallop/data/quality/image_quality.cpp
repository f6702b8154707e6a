#include "gallop/data/quality/image_quality.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "gallop/base/error.h"
#include "gallop/base/hash.h"
#include "gallop/base/text.h"
#include "gallop/data/parallel.h"
#include "gallop/data/quality/duplicate_findings.h"
#include "gallop/data/quality/duplicates.h"
#include "gallop/data/quality/outliers.h"
#include "gallop/data/quality/perceptual_hash.h"
#include "gallop/data/report.h"
#include "gallop/data/resize.h"

namespace gallop::data {

namespace {

constexpr int64_t kChunk = 256;   // Images per task of a thread.
constexpr size_t kPictured = 12;  // Groups of a finding with pictures.
constexpr size_t kMembers = 8;    // Members of a group with pictures.
constexpr int kPictureSide = 128;
constexpr double kUniform = 2;  // Standard deviation of gray values, of 255.
// Farther than these from a quartile an image is an outlier, whatever the others are.
constexpr double kSizeMargin = 0.6931471805599453;    // Half or twice as large.
constexpr double kAspectMargin = 0.4054651081081644;  // 1.5 times as wide or high.
constexpr double kBrightnessMargin = 0.1;
constexpr double kFarOut = 3, kOut = 1.5;  // Tukey's factors.

struct Measured {
  Part part = Part::kTrain;
  int64_t index = 0;  // In its split.
  std::string problem;
  int height = 0, width = 0;
  double brightness = 0, deviation = 0;  // Mean of 0 to 1; standard deviation of 0 to 255.
  Fingerprint fingerprint;
};

Detail detail_of(const HashedPixels& gray) {
  constexpr size_t kSide = kDetailSide;
  constexpr size_t kLine = kHashedSide;
  std::array<int, kSide * kSide> small{};
  for (size_t y = 0; y < kSide; ++y) {
    for (size_t x = 0; x < kSide; ++x) {
      const size_t at = 2 * y * kLine + 2 * x;
      const int sum = gray[at] + gray[at + 1] + gray[at + kLine] + gray[at + kLine + 1];
      small[y * kSide + x] = (sum + 2) / 4;
    }
  }
  // The pixels beside one; at an edge, the pixel itself.
  const auto before = [](size_t i) { return i == 0 ? i : i - 1; };
  const auto after = [](size_t i) { return std::min(i + 1, kSide - 1); };
  Detail detail{};
  for (size_t y = 0; y < kSide; ++y) {
    for (size_t x = 0; x < kSide; ++x) {
      int around = 0;
      for (const size_t row : {before(y), y, after(y)}) {
        for (const size_t column : {before(x), x, after(x)}) around += small[row * kSide + column];
      }
      // Half of the difference, so that it fits.
      const auto half = std::lround((small[y * kSide + x] - around / 9.0) / 2);
      detail[y * kSide + x] = static_cast<int8_t>(std::clamp<long>(half, -127, 127));
    }
  }
  return detail;
}

void measure(const Image& image, Measured& out) {
  out.height = image.height;
  out.width = image.width;
  const std::string shape = fmt::format("{}x{}x{}", image.height, image.width, image.channels);
  const std::string_view pixels(reinterpret_cast<const char*>(image.pixels.data()),
                                static_cast<size_t>(image.height) * image.width * image.channels);
  out.fingerprint.exact = xxh3_64(pixels) ^ xxh3_64(shape);
  const auto gray = hashed_pixels(image);
  out.fingerprint.perceptual = perceptual_hash(gray);
  out.fingerprint.mirrored = perceptual_hash(mirror(gray));
  out.fingerprint.detail = detail_of(gray);
  double sum = 0, squares = 0;
  for (const uint8_t value : gray) {
    sum += value;
    squares += value * value;
  }
  const auto count = static_cast<double>(gray.size());
  const double mean = sum / count;
  out.brightness = mean / 255;
  out.deviation = std::sqrt(std::max(0.0, squares / count - mean * mean));
}

class ImageCheck {
 public:
  ImageCheck(const std::array<const ImageSet*, kParts>& splits, int threads)
      : sets_(splits), threads_(threads) {
    quality_.unit = "images";
    quality_.checks = {"damaged files", "duplicates",   "leakage",
                       "image size",    "aspect ratio", "brightness"};
    if (has_classes(*sets_[0])) quality_.checks.emplace_back("class balance");
    std::vector<std::string> descriptions;
    for (size_t i = 0; i < kParts; ++i) {
      if (sets_[i] == nullptr) continue;
      quality_.splits.emplace_back(kPartNames[i], sets_[i]->size());
      for (int64_t index = 0; index < sets_[i]->size(); ++index) {
        descriptions.push_back(sets_[i]->describe(index));
        all_.push_back({.part = static_cast<Part>(i), .index = index});
      }
    }
    names_ = SampleNames(descriptions);
  }

  DataQuality run() {
    measure_all();
    find_damaged();
    find_duplicates();
    find_outliers(
        "size-outliers", "Unusual size", kFarOut, kSizeMargin,
        [](const Measured& one) { return std::log(double{1} * one.width * one.height) / 2; },
        [](const Measured& one) { return fmt::format("{} x {}", one.height, one.width); },
        "size (height x width)");
    find_outliers(
        "aspect-ratio-outliers", "Unusual aspect ratio", kFarOut, kAspectMargin,
        [](const Measured& one) { return std::log(static_cast<double>(one.width) / one.height); },
        [](const Measured& one) { return fmt::format("{} x {}", one.height, one.width); },
        "aspect ratio (height x width)");
    find_outliers(
        "brightness-outliers", "Unusual brightness", kOut, kBrightnessMargin,
        [](const Measured& one) { return one.brightness; },
        [](const Measured& one) { return fmt::format("brightness {:.2f}", one.brightness); },
        "brightness (0 is black, 1 is white)");
    find_uniform();
    check_classes();
    add_pictures();
    return std::move(quality_);
  }

 private:
  const ImageSet& set_of(Part part) const { return *sets_[static_cast<size_t>(part)]; }

  // Images with numbers or masks as targets have none, or a single one.
  static bool has_classes(const ImageSet& set) { return set.class_names().size() > 1; }

  FoundSample found(const Measured& one, std::string value = {}) const {
    const ImageSet& set = set_of(one.part);
    FoundSample sample{.part = one.part,
                       .name = names_.shorten(set.describe(one.index)),
                       .value = std::move(value)};
    if (has_classes(set) && set.target_size() == 0) {
      sample.label = set.class_names()[static_cast<size_t>(set.label(one.index))];
    }
    return sample;
  }

  void measure_all() {
    const auto count = static_cast<int64_t>(all_.size());
    run_parallel(threads_, (count + kChunk - 1) / kChunk, [&](int64_t chunk) {
      Image image;
      for (int64_t i = chunk * kChunk; i < std::min(count, (chunk + 1) * kChunk); ++i) {
        Measured& one = all_[static_cast<size_t>(i)];
        try {
          set_of(one.part).read(one.index, {.channels = 0}, image);
          measure(image, one);
        } catch (const DataError& error) {
          one.problem = error.what();
        }
      }
    });
    for (size_t i = 0; i < all_.size(); ++i) {
      if (all_[i].problem.empty()) readable_.push_back(i);
    }
  }

  void find_damaged() {
    QualityFinding finding{.kind = "damaged-files", .title = "Damaged files"};
    for (const Measured& one : all_) {
      if (one.problem.empty()) continue;
      finding.groups.push_back({found(one, one.problem)});
      finding.excluded.push_back(finding.groups.back()[0].name);
    }
    if (finding.groups.empty()) return;
    finding.text =
        counted(static_cast<int64_t>(finding.groups.size()), "images") + " cannot be decoded";
    finding.remedy = "data.on_error: skip";
    quality_.findings.push_back(std::move(finding));
  }

  void find_duplicates() {
    std::vector<Fingerprint> fingerprints;
    std::vector<Part> parts;
    std::vector<uint64_t> hashes;
    for (const size_t i : readable_) {
      fingerprints.push_back(all_[i].fingerprint);
      parts.push_back(all_[i].part);
      hashes.push_back(all_[i].fingerprint.exact);
    }
    add_duplicates(
        group_duplicates(parts, hashes, near_pairs(fingerprints, threads_)),
        [&](int64_t i) { return found(all_[readable_[static_cast<size_t>(i)]]); }, quality_);
  }

  template <typename Value, typename Text>
  void find_outliers(const char* kind, const char* title, double factor, double margin,
                     const Value& value_of, const Text& text_of, const char* what) {
    std::vector<double> values;
    for (const size_t i : readable_) values.push_back(value_of(all_[i]));
    QualityFinding finding{.kind = kind, .title = title};
    const Fences limits = fences(values, factor, margin);
    for (const int64_t i : outliers(values, limits)) {
      const Measured& one = all_[readable_[static_cast<size_t>(i)]];
      finding.groups.push_back({found(one, text_of(one))});
      finding.excluded.push_back(finding.groups.back()[0].name);
    }
    if (finding.groups.empty()) return;
    finding.text =
        fmt::format("{} far from the others in {}",
                    counted(static_cast<int64_t>(finding.groups.size()), "images"), what);
    quality_.findings.push_back(std::move(finding));
  }

  void find_uniform() {
    QualityFinding finding{.kind = "uniform-images", .title = "Uniform images"};
    for (const size_t i : readable_) {
      const Measured& one = all_[i];
      if (one.deviation >= kUniform) continue;
      finding.groups.push_back({found(one, fmt::format("brightness {:.2f}", one.brightness))});
      finding.excluded.push_back(finding.groups.back()[0].name);
    }
    if (finding.groups.empty()) return;
    finding.text = counted(static_cast<int64_t>(finding.groups.size()), "images") +
                   " whose pixels are all nearly equal";
    quality_.findings.push_back(std::move(finding));
  }

  void check_classes() {
    const ImageSet& train = *sets_[0];
    if (!has_classes(train)) return;
    check_balance(count_classes(train), train.class_names(), quality_, train.target_size() == 0);
  }

  void add_pictures() {
    std::map<std::string, const Measured*> by_name;
    for (const size_t i : readable_) {
      by_name[names_.shorten(set_of(all_[i].part).describe(all_[i].index))] = &all_[i];
    }
    Image image;
    for (QualityFinding& finding : quality_.findings) {
      for (size_t i = 0; i < std::min(kPictured, finding.groups.size()); ++i) {
        auto& group = finding.groups[i];
        for (size_t j = 0; j < std::min(kMembers, group.size()); ++j) {
          const auto one = by_name.find(group[j].name);
          if (one == by_name.end()) continue;
          set_of(one->second->part).read(one->second->index, {.channels = 0}, image);
          group[j].picture = thumbnail_of(image, kPictureSide);
        }
      }
    }
  }

  std::array<const ImageSet*, kParts> sets_;
  int threads_;
  std::vector<Measured> all_;
  std::vector<size_t> readable_;  // Indices of `all_`.
  SampleNames names_{{}};
  DataQuality quality_;
};

}  // namespace

Image thumbnail_of(const Image& image, int longest) {
  const int side = std::max(image.height, image.width);
  Image small;
  small.channels = image.channels;
  small.height = image.height;
  small.width = image.width;
  if (side > longest) {
    const auto reduced = [&](int length) {
      return std::max(1,
                      static_cast<int>(std::lround(static_cast<double>(length) * longest / side)));
    };
    small.height = reduced(image.height);
    small.width = reduced(image.width);
  }
  const size_t bytes = static_cast<size_t>(small.height) * small.width * small.channels;
  small.pixels.resize(bytes);
  if (side <= longest) {
    std::copy_n(image.pixels.begin(), bytes, small.pixels.begin());
    return small;
  }
  Resizer resizer;
  resizer.resize({.pixels = image.pixels.data(),
                  .height = image.height,
                  .width = image.width,
                  .channels = image.channels},
                 {.top = 0,
                  .left = 0,
                  .height = static_cast<double>(image.height),
                  .width = static_cast<double>(image.width)},
                 small.height, small.width, small.pixels.data());
  return small;
}

DataQuality check_images(const std::array<const ImageSet*, kParts>& splits, int threads) {
  return ImageCheck(splits, threads).run();
}

}  // namespace gallop::data
