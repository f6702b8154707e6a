#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "gallop/config/component.h"
#include "gallop/config/visitor.h"
#include "gallop/data/loader.h"

namespace gallop::data {

/// What all random choices for a batch follow from. Together with a row's number in its epoch,
/// which is Batch::position plus its number in the batch, so that they do not depend on how many
/// processes share the batch.
struct BatchKey {
  uint64_t seed = 0;
};

/// A change of whole training batches, between the loader and the step, on the device that
/// computes. It may replace a batch's tensors, or change them in place. A pure function of its
/// arguments.
class BatchTransform {
 public:
  virtual ~BatchTransform() = default;

  /// Throws UsageError where batches of such fields cannot be treated so.
  virtual void check(const Fields& /*fields*/) const {}
  virtual void apply(const BatchKey& key, Batch& batch) const = 0;
};

using BatchTransforms = std::vector<std::unique_ptr<BatchTransform>>;

/// Batch transforms by name.
using BatchTransformRegistry = config::Registry<BatchTransform>;
BatchTransformRegistry built_in_batch_transforms();

/// Builds a list for samples of such fields; null for an empty one. Throws UsageError where one
/// does not fit them.
std::shared_ptr<const BatchTransforms> build_batch_transforms(
    const BatchTransformRegistry& registry, const config::ComponentList& list,
    const Fields& fields);

/// Adds normal noise to the input, as torchvision's v2.GaussianNoise: what has been normalized has
/// a standard deviation of 1.
struct GaussianNoiseConfig {
  double mean = 0;
  double sigma = 0.1;
};

void visit(config::Visitor& visitor, GaussianNoiseConfig& config);
/// Throws UsageError where the input is not floating-point.
std::unique_ptr<BatchTransform> make_gaussian_noise(const GaussianNoiseConfig& config);

}  // namespace gallop::data
