#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "gallop/config/component.h"
#include "gallop/config/visitor.h"
#include "gallop/data/loader.h"

namespace gallop::data {

/// The seed of all random choices for a batch. Each row combines it with its index in the epoch,
/// Batch::position plus the row index, so that the choices do not depend on how many processes
/// share the batch.
struct BatchKey {
  uint64_t seed = 0;
};

/// A transform of whole training batches, applied between the loader and the step on the device
/// that computes. It may replace a batch's tensors or change them in place, and is a pure function
/// of its arguments.
class BatchTransform {
 public:
  virtual ~BatchTransform() = default;

  /// Throws UsageError if the transform does not support batches with these fields.
  virtual void check(const Fields& /*fields*/) const {}
  virtual void apply(const BatchKey& key, Batch& batch) const = 0;
};

using BatchTransforms = std::vector<std::unique_ptr<BatchTransform>>;

/// Batch transforms by name.
using BatchTransformRegistry = config::Registry<BatchTransform>;
BatchTransformRegistry built_in_batch_transforms();

/// Builds a list for samples with these fields; null if the list is empty. Throws UsageError if a
/// transform does not support the fields.
std::shared_ptr<const BatchTransforms> build_batch_transforms(
    const BatchTransformRegistry& registry, const config::ComponentList& list,
    const Fields& fields);

/// Adds Gaussian noise to the input, like torchvision's v2.GaussianNoise. `sigma` is relative to
/// normalized inputs, whose standard deviation is 1.
struct GaussianNoiseConfig {
  double mean = 0;
  double sigma = 0.1;
};

void visit(config::Visitor& visitor, GaussianNoiseConfig& config);
/// Throws UsageError if the input is not floating-point.
std::unique_ptr<BatchTransform> make_gaussian_noise(const GaussianNoiseConfig& config);

/// Sets pixels of images, with all their channels, or elements of other inputs to a value, each
/// with probability `p`, like albumentations' PixelDropout. `value` is relative to normalized
/// inputs: 0 is their mean.
struct PixelDropoutConfig {
  double p = 0.05;
  double value = 0;
};

void visit(config::Visitor& visitor, PixelDropoutConfig& config);
/// Throws UsageError if the input is not floating-point.
std::unique_ptr<BatchTransform> make_pixel_dropout(const PixelDropoutConfig& config);

}  // namespace gallop::data
