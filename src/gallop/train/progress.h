#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "gallop/data/loader.h"
#include "gallop/schedule/schedule.h"

namespace gallop::train {

/// Every counter of a run. What is saved here and in the tensors is all that a resume needs.
struct Progress {
  int64_t step = 0;     ///< Updates done, skipped ones included.
  int64_t samples = 0;  ///< Samples asked for, broken ones included.
  int64_t skipped_samples = 0;
  int64_t skipped_updates = 0;
  int64_t evaluated_step = 0;  ///< Of the last evaluation.
  double best_score = 0;
  int64_t best_step = -1;                ///< -1 before the first finite score.
  double score_to_beat = 0;              ///< Of the last evaluation that was a gain.
  int64_t evaluations_without_gain = 0;  ///< Since then.
  int64_t spikes_in_row = 0;             ///< Losses, up to now.
  int64_t rewinds = 0;
  int64_t rewind_step = -1;  ///< Of the checkpoint to go back to; -1 for none.
  double training_seconds = 0;
  int64_t splits = 1;  ///< See TrainStep::splits().

  /// Notes an evaluation; true where it is the best so far. Higher scores are better, and one that
  /// is not finite is never the best. It is a gain where it is better by more than `min_change`
  /// than the last that was.
  bool note_evaluation(double score, double min_change);

  /// As written to a checkpoint, with the loader's four integers; numbers read back exactly.
  std::map<std::string, std::string> to_map(const data::LoaderState& loader) const;
  /// Takes out of such a map what speaks of other checkpoints of its run: the best so far, and the
  /// one to go back to.
  static void forget_checkpoints(std::map<std::string, std::string>& map);
  /// The inverse. Throws DataError where a value is missing or no number.
  static Progress from_map(const std::map<std::string, std::string>& map,
                           data::LoaderState& loader);
};

/// A number of a checkpoint. Throws DataError where it is missing or none.
int64_t read_integer(const std::map<std::string, std::string>& map, const std::string& name);

/// Adds a schedule's state to what is written, as "NAME.0" and so on.
void write_schedule(const schedule::Schedule& schedule, const std::string& name,
                    std::map<std::string, std::string>& map);
/// The inverse. Throws DataError where a value is missing or no number.
void read_schedule(const std::map<std::string, std::string>& map, const std::string& name,
                   schedule::Schedule& schedule);

}  // namespace gallop::train
