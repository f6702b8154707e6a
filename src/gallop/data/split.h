#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "gallop/data/data_module.h"
#include "gallop/data/dataset.h"
#include "gallop/data/image.h"

namespace gallop::data {

/// A subset of the images of another set, with indices of its own.
class SubsetImages final : public ImageSet {
 public:
  /// `indices` must be valid in `set`.
  SubsetImages(std::shared_ptr<const ImageSet> set, std::vector<int64_t> indices)
      : set_(std::move(set)), indices_(std::move(indices)) {}

  int64_t size() const override { return static_cast<int64_t>(indices_.size()); }
  int64_t label(int64_t index) const override { return set_->label(at(index)); }
  const std::vector<std::string>& class_names() const override { return set_->class_names(); }
  std::string describe(int64_t index) const override { return set_->describe(at(index)); }
  void read(int64_t index, const DecodeRequest& request, Image& image) const override {
    set_->read(at(index), request, image);
  }
  ImageHeader header(int64_t index) const override { return set_->header(at(index)); }
  std::optional<ImageShape> stored_shape() const override { return set_->stored_shape(); }
  const uint8_t* stored_pixels(int64_t index) const override {
    return set_->stored_pixels(at(index));
  }
  std::string identity() const override { return set_->identity(); }
  uint64_t stamp(int64_t index) const override { return set_->stamp(at(index)); }
  int64_t origin(int64_t index) const override { return set_->origin(at(index)); }
  int64_t origins() const override { return set_->origins(); }

 private:
  int64_t at(int64_t index) const { return indices_[static_cast<size_t>(index)]; }

  std::shared_ptr<const ImageSet> set_;  // Shared with the other part of the split.
  std::vector<int64_t> indices_;
};

/// A subset of other samples, with indices of its own.
class SubsetSamples final : public Samples {
 public:
  /// `indices` must be valid in `samples`.
  SubsetSamples(std::shared_ptr<const Samples> samples, std::vector<int64_t> indices)
      : Samples(samples->fields()), samples_(std::move(samples)), indices_(std::move(indices)) {}

  int64_t size() const override { return static_cast<int64_t>(indices_.size()); }
  bool every_target_counts() const override { return samples_->every_target_counts(); }
  std::string describe(int64_t index) const override { return samples_->describe(at(index)); }
  std::unique_ptr<Scratch> make_scratch() const override { return samples_->make_scratch(); }
  bool fill(int64_t index, int64_t epoch, const SampleRow& row, Scratch& scratch) const override {
    return samples_->fill(at(index), epoch, row, scratch);
  }

 private:
  int64_t at(int64_t index) const { return indices_[static_cast<size_t>(index)]; }

  std::shared_ptr<const Samples> samples_;
  std::vector<int64_t> indices_;
};

/// A partition of the indices of a set into two groups, each ascending.
struct IndexCut {
  std::vector<int64_t> kept;
  std::vector<int64_t> taken;
};

/// Takes `fraction` (in 0 to 1) of the images of each class, selected by (seed, index) and thus
/// reproducible on every machine. Counts per class are rounded so that the total is exact, and each
/// class keeps at least one image.
IndexCut cut_by_class(const ImageSet& set, double fraction, uint64_t seed);

/// Split `fraction` of the training data off as validation split: images stratified by class, the
/// end of a text, other samples selected by (seed, index). Throw DataError if either split would be
/// empty, UsageError if `fraction` is not in (0, 1).
void cut_images(ImageParts& parts, double fraction, uint64_t seed);
void cut_text(TextParts& parts, double fraction);
void cut_validation(DataModule& module, double fraction, uint64_t seed);

}  // namespace gallop::data
