#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace gallop::train {

/// The batch size that each step of a run had. A run begins with one stretch; a resume with another
/// batch size, or with data of another size, adds one. Steps and samples are converted with it.
class BatchHistory {
 public:
  /// Steps of one batch size, up to the next stretch.
  struct Stretch {
    int64_t step = 0;      ///< Updates done where it begins,
    int64_t samples = 0;   ///< samples of the whole run,
    int64_t epoch = 0;     ///< whole epochs,
    int64_t position = 0;  ///< and samples of the epoch after them.
    int64_t batch = 1;
    int64_t samples_per_epoch = 1;

    int64_t batches_per_epoch() const { return (samples_per_epoch + batch - 1) / batch; }
    /// Samples of the whole run after update `at`, which is not before `step`.
    int64_t samples_after(int64_t at) const;
    /// Epochs done then, 1.5 in the middle of the second one, counted in samples.
    double epochs_after(int64_t at) const;
  };

  /// A run in which every step has this batch size.
  BatchHistory(int64_t batch, int64_t samples_per_epoch);

  /// That of a checkpoint (TrainingState::trainer) from which training continues with this batch
  /// size. Checkpoints of older versions, which have none, are taken to be of one batch size where
  /// their counters allow it. Throws DataError where a value is missing or no number.
  static BatchHistory resumed(const std::map<std::string, std::string>& trainer, int64_t batch,
                              int64_t samples_per_epoch);

  /// What resumed() reads.
  void write(std::map<std::string, std::string>& trainer) const;

  bool is_uniform() const { return stretches_.size() == 1; }
  const Stretch& first() const { return stretches_.front(); }
  const Stretch& last() const { return stretches_.back(); }
  const std::vector<Stretch>& stretches() const { return stretches_; }
  /// The stretch in which `step` updates are done; the later one where two meet.
  const Stretch& at(int64_t step) const;

 private:
  BatchHistory() = default;
  std::vector<Stretch> stretches_;  // By step; the first begins with step 0.
};

}  // namespace gallop::train
