#pragma once

#include <cstdint>

namespace gallop::data {

/// The size of batches from a position on.
struct BatchSizeChange {
  int64_t epoch = 0, position = 0;
  int64_t batch = 1;
};

/// Divides an epoch into batches of different numbers of samples. Thread-safe.
class BatchPlan {
 public:
  virtual ~BatchPlan() = default;

  /// The end of the batch that contains a position of an epoch.
  virtual int64_t end(int64_t epoch, int64_t position) const = 0;
  /// The number of batches, which is the same in every epoch.
  virtual int64_t batches() const = 0;
  /// The number of samples in the largest batch.
  virtual int64_t most_samples() const = 0;
};

}  // namespace gallop::data
