#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "gallop/data/loader.h"
#include "gallop/schedule/schedule.h"

namespace gallop::train {

/// All counters of a run. With the tensors of a checkpoint they are the complete state for a
/// resume.
struct Progress {
  int64_t step = 0;     ///< Updates done, including skipped ones.
  int64_t samples = 0;  ///< Samples requested, including broken ones.
  int64_t skipped_samples = 0;
  int64_t skipped_updates = 0;
  int64_t evaluated_step = 0;  ///< Step of the last evaluation.
  double best_score = 0;
  int64_t best_step = -1;                ///< -1 before the first finite score.
  double score_to_beat = 0;              ///< Score of the last evaluation that was an improvement.
  int64_t evaluations_without_gain = 0;  ///< Evaluations since then.
  int64_t spikes_in_row = 0;             ///< Consecutive spikes up to now.
  int64_t rewinds = 0;
  int64_t rewind_step = -1;  ///< Step of the checkpoint to rewind to; -1 for none.
  double training_seconds = 0;
  int64_t splits = 1;  ///< See TrainStep::splits().

  /// Records an evaluation; true if it is the best so far. Higher scores are better, and a score
  /// that is not finite is never the best. It is an improvement if it exceeds the last improvement
  /// by more than `min_change`.
  bool note_evaluation(double score, double min_change);

  /// The entries of a checkpoint, with the loader's four integers; numbers are read back exactly.
  std::map<std::string, std::string> to_map(const data::LoaderState& loader) const;
  /// Removes the entries that refer to other checkpoints of the run: the best score, and the
  /// checkpoint to rewind to.
  static void forget_checkpoints(std::map<std::string, std::string>& map);
  /// The inverse of to_map(). Throws DataError if a value is missing or not a number.
  static Progress from_map(const std::map<std::string, std::string>& map,
                           data::LoaderState& loader);
};

/// Reads an integer of a checkpoint. Throws DataError if it is missing or not an integer.
int64_t read_integer(const std::map<std::string, std::string>& map, const std::string& name);

/// Adds a schedule's state to a map, as "NAME.0" and so on.
void write_schedule(const schedule::Schedule& schedule, const std::string& name,
                    std::map<std::string, std::string>& map);
/// The inverse of write_schedule(). Throws DataError if a value is missing or not a number.
void read_schedule(const std::map<std::string, std::string>& map, const std::string& name,
                   schedule::Schedule& schedule);

}  // namespace gallop::train
