#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "gallop/config/component.h"
#include "gallop/data/batch.h"

namespace gallop::data {

/// The seed of all random choices for a batch. Each row combines it with its index in the epoch,
/// Batch::position_of(), and a choice for all rows with Batch::whole_position, so that the choices
/// do not depend on how many processes share the batch.
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
  /// Whether samples are mixed with partner() of the same batch, and with them their targets: class
  /// labels become probabilities of the classes before it is applied.
  virtual bool mixes() const { return false; }
  /// The row of the whole batch that its row `row` is mixed with; different rows have different
  /// partners.
  virtual int64_t partner(const BatchKey& /*key*/, const WholeBatch& /*whole*/, int64_t row) const {
    return row;
  }
  /// How many partners of `rows` adjacent rows may be other rows.
  virtual int64_t most_partners(int64_t /*rows*/) const { return 0; }
  /// Changes the batch. If it mixes, the last Batch::partner_rows need not be changed.
  virtual void apply(const BatchKey& key, Batch& batch) const = 0;
};

/// The transforms of a recipe, applied in order.
class BatchTransforms {
 public:
  /// `classes`: the number of classes if targets are class labels, which are converted if a
  /// transform mixes them; else 0. Throws UsageError if several transforms mix.
  BatchTransforms(std::vector<std::unique_ptr<BatchTransform>> list, int64_t classes);

  bool mixes() const { return mixing_ != nullptr; }
  /// Whether targets become probabilities of classes, fp32 [N, classes].
  bool softens_labels() const { return classes_ > 0; }
  /// The positions in the epoch of the rows outside [begin, end) of a batch that rows in it are
  /// mixed with.
  std::vector<int64_t> partners(const BatchKey& key, const WholeBatch& whole, int64_t begin,
                                int64_t end) const;
  int64_t most_partners(int64_t rows) const;
  /// Applies all, and removes the partner rows. Throws DataError for a class label out of range, on
  /// the CPU.
  void apply(const BatchKey& key, Batch& batch) const;

 private:
  std::vector<std::unique_ptr<BatchTransform>> list_;
  const BatchTransform* mixing_ = nullptr;
  int64_t classes_;  // 0: targets stay what they are.
};

/// Batch transforms by name.
using BatchTransformRegistry = config::Registry<BatchTransform>;
BatchTransformRegistry built_in_batch_transforms();

/// Builds a list for samples with these fields; null if the list is empty. `classes` is as in
/// BatchTransforms. Throws UsageError if a transform does not support the fields.
std::shared_ptr<const BatchTransforms> build_batch_transforms(
    const BatchTransformRegistry& registry, const config::ComponentList& list, const Fields& fields,
    int64_t classes);

}  // namespace gallop::data
