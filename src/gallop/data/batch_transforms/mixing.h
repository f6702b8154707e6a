#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "gallop/base/philox.h"
#include "gallop/config/visitor.h"
#include "gallop/data/batch_transform.h"
#include "gallop/data/batch_transforms/mix_rows.h"

namespace gallop::data {

/// Which library's definition a transform follows: the partner of row i of B, how many lambdas a
/// batch has, and how the box of CutMix is rounded.
enum class MixingVariant {
  kTorchvision,  ///< Partner i - 1; one lambda for the batch.
  kTimm,         ///< Partner B - 1 - i; one lambda for the batch, each pair or each row.
  kFastai,       ///< Random partners; MixUp: a lambda for each row, no less than 0.5.
};

struct MixingConfig {
  double alpha = 1;
  double p = 1;
  std::string variant = "torchvision";
  std::string mode = "batch";
};

void visit(config::Visitor& visitor, MixingConfig& config);

/// MixUp (Zhang et al., "mixup: Beyond empirical risk minimization", 2018): inputs and targets
/// become lambda * own + (1 - lambda) * partner's, with lambda from Beta(alpha, alpha). Throws
/// UsageError if `mode` does not belong to the variant.
std::unique_ptr<BatchTransform> make_mixup(const MixingConfig& config);

/// CutMix (Yun et al., "CutMix: Regularization strategy to train strong classifiers with
/// localizable features", 2019): a box of each image is its partner's, and targets are mixed by
/// area. Masks get their partner's box. Throws UsageError if `mode` does not belong to the variant.
std::unique_ptr<BatchTransform> make_cutmix(const MixingConfig& config);

/// The box around a centre for a lambda, clipped at the edges of the image.
Region cutmix_box(MixingVariant variant, int height, int width, double lambda, int center_y,
                  int center_x);

/// The row of a batch of images with such a box: its targets are mixed by area.
MixedRow mixed_by_area(const Region& box, int height, int width);

/// Throws UsageError, with the transform's name, if the fields of samples cannot be mixed, or with
/// `cuts`, if boxes cannot be cut out of them.
void check_mixed_fields(const char* name, const Fields& fields, bool cuts);

/// Mixes inputs and targets of a batch; the common part of MixUp and CutMix.
class Mixing : public BatchTransform {
 public:
  enum class Mode { kBatch, kPair, kElement };
  struct Options {
    double alpha = 1;
    double p = 1;
    MixingVariant variant = MixingVariant::kTorchvision;
    Mode mode = Mode::kBatch;
  };

  explicit Mixing(const Options& options) : options_(options) {}

  bool mixes() const override { return true; }
  int64_t partner(const BatchKey& key, const WholeBatch& whole, int64_t row) const override;
  int64_t most_partners(int64_t rows) const override;
  void apply(const BatchKey& key, Batch& batch) const override;

  /// What becomes of each own row of the batch.
  std::vector<MixedRow> plan(const BatchKey& key, const Batch& batch) const;

 protected:
  const Options& options() const { return options_; }
  /// Draws what becomes of a row, or of all rows that share a lambda; height and width are those of
  /// the input, 0 if it is no image.
  virtual MixedRow draw(int height, int width, Philox& random) const = 0;
  /// lambda from Beta(alpha, alpha).
  double draw_lambda(Philox& random) const;

 private:
  Options options_;
};

}  // namespace gallop::data
