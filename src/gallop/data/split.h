#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
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
  int64_t target_size() const override { return set_->target_size(); }
  const float* targets(int64_t index) const override { return set_->targets(at(index)); }
  std::string describe(int64_t index) const override { return set_->describe(at(index)); }
  void read(int64_t index, const DecodeRequest& request, Image& image) const override {
    set_->read(at(index), request, image);
  }
  ImageHeader header(int64_t index) const override { return set_->header(at(index)); }
  int64_t window_blocks() const override { return set_->window_blocks(); }
  int64_t block(int64_t index) const override { return set_->block(at(index)); }
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
  int64_t window_blocks() const override { return samples_->window_blocks(); }
  int64_t block(int64_t index) const override { return samples_->block(at(index)); }
  std::optional<int64_t> label(int64_t index) const override { return samples_->label(at(index)); }
  std::vector<int64_t> input_sizes(int64_t index) const override {
    return samples_->input_sizes(at(index));
  }
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

/// Cuts off `fraction` (in 0 to 1) of the images of each class, selected by (seed, index) and thus
/// reproducible on every machine. Counts per class are rounded so that the total is exact, and each
/// class keeps at least one image.
IndexCut cut_by_class(const ImageSet& set, double fraction, uint64_t seed);

/// Which training samples become the validation split: a fraction of them, or one of several folds
/// of nearly equal size.
struct Holdout {
  double fraction = 0;
  uint64_t seed = 0;
  int64_t folds = 0;  ///< If not 0, fold number `fold` in place of a fraction.
  int64_t fold = 0;
  /// Samples of a group stay together: those with the same value in a column of this name of a
  /// table; "folder" for those whose files share a folder; or a regular expression, found in a
  /// sample's name; empty: no groups.
  std::string group;

  bool is_empty() const { return fraction == 0 && folds == 0; }
  /// Distinguishes the splits of the same data.
  std::string identity() const;
};

/// Throws UsageError if options contradict each other, or the expression is invalid.
void check(const Holdout& holdout);

/// The indices of a fold, and the others. With labels each class is distributed equally, as
/// scikit-learn's StratifiedKFold does; the counts of any class and of all samples in two folds
/// differ by at most 1. Samples without labels have empty `labels`.
IndexCut cut_fold(int64_t size, const std::vector<int64_t>& labels, const Holdout& holdout);

/// As cut_fold(), but keeps the samples of a group together: groups are assigned to the smallest
/// fold in descending order of size, as by scikit-learn's GroupKFold, or drawn at random up to the
/// fraction. `groups` has the name of each sample's group. Throws DataError if there are fewer
/// groups than folds, or if either part would be empty.
IndexCut cut_groups(const std::vector<std::string>& groups, const Holdout& holdout);

/// The groups of samples with these names, by Holdout::group. Throws DataError if the expression is
/// not found in a name.
std::vector<std::string> groups_of(int64_t size,
                                   const std::function<std::string(int64_t)>& describe,
                                   const std::string& group);

/// Whether training samples are to be split off. Throws UsageError for folds or groups of data that
/// have a validation split.
bool holds_out(const Holdout& holdout, bool has_validation);

/// The validation rows of a fraction or a fold, and the others, stratified by `labels`, one for
/// each row, if there are any. Throws DataError if either group would be empty, UsageError if the
/// fraction is not in (0, 1).
IndexCut cut_rows(int64_t rows, const std::vector<int64_t>& labels, size_t classes,
                  const Holdout& holdout);

/// Split training data off as validation split: images, and other samples in folds, stratified by
/// class; the end of a text; other samples selected by (seed, index). Throw DataError if either
/// split would be empty, UsageError if the fraction is not in (0, 1).
void cut_images(ImageParts& parts, const Holdout& holdout);
void cut_text(TextParts& parts, const Holdout& holdout);
void cut_validation(DataModule& module, const Holdout& holdout);

}  // namespace gallop::data
