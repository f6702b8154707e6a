#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "gallop/data/batch_plan.h"

namespace gallop::train {

/// The batch size of each step of a run. A run begins with one segment; a resume with another batch
/// size, or with data of another size, adds one. Steps and samples are converted with it.
class BatchHistory {
 public:
  /// Consecutive steps of one batch size. The counters are those at its beginning.
  struct Segment {
    int64_t step = 0;      ///< Completed updates of the whole run.
    int64_t samples = 0;   ///< Completed samples of the whole run.
    int64_t epoch = 0;     ///< Completed epochs.
    int64_t position = 0;  ///< Samples done in the current epoch.
    int64_t batch = 1;
    int64_t samples_per_epoch = 1;
    /// Batches in an epoch, if they differ in size and `batch` is their mean; otherwise 0.
    int64_t batches = 0;

    int64_t batches_per_epoch() const {
      return batches > 0 ? batches : (samples_per_epoch + batch - 1) / batch;
    }
    /// Samples of the whole run after update `at`, which is not before `step`.
    int64_t samples_after(int64_t at) const;
    /// Epochs after update `at`, counted in samples: 1.5 in the middle of the second one.
    double epochs_after(int64_t at) const;
  };

  /// A run in which every step has this batch size; or, if `batches` is not 0, in which every epoch
  /// has `batches` batches of different sizes.
  BatchHistory(int64_t batch, int64_t samples_per_epoch, int64_t batches = 0);

  /// The history of a checkpoint (TrainingState::trainer) from which training continues as
  /// `planned` ends: if that has another batch size or number of samples, the rest of the run has
  /// it. For checkpoints of older versions, which have no history, a single batch size is assumed
  /// if their counters allow it. Throws DataError if a value is missing or not a number.
  static BatchHistory resumed(const std::map<std::string, std::string>& trainer,
                              const BatchHistory& planned);

  /// Plans another batch size from this step on, which is not before the last segment.
  void change_batch(int64_t step, int64_t batch);

  /// Writes the entries that resumed() reads.
  void write(std::map<std::string, std::string>& trainer) const;

  bool is_uniform() const { return segments_.size() == 1; }
  const Segment& first() const { return segments_.front(); }
  const Segment& last() const { return segments_.back(); }
  const std::vector<Segment>& segments() const { return segments_; }
  /// For a loader; empty if the batch size never changes.
  std::vector<data::BatchSizeChange> changes() const;
  /// The segment in which `step` updates are done; at a boundary the later one.
  const Segment& at(int64_t step) const;

 private:
  BatchHistory() = default;
  std::vector<Segment> segments_;  // By step; the first begins with step 0.
};

}  // namespace gallop::train
