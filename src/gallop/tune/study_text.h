#pragma once

#include <limits>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "gallop/tune/registries.h"
#include "gallop/tune/study.h"

namespace gallop::tune {

/// The trial with this number. Throws UsageError if there is none.
const Trial& trial_at(const Study& study, int64_t number);

/// The name of a sampler or a pruner in the settings, {"name": "tpe", ...}; empty for none.
std::string name_in(const std::string& component);

/// The number of the best trial, or those of the Pareto front. Empty if none is complete.
std::vector<int64_t> best_trials(const Study& study);

/// "12 of 30 trials finished (3 pruned, 1 failed), 2 running, 1 waiting"
std::string progress_text(const Study& study);

/// progress_text(), with "; all points of the grid have been tried" or similar if the sampler is
/// exhausted before the requested number of trials, provided that it is in `registries`.
std::string standing_text(const Study& study, const TuneRegistries& registries);

/// The metrics of a complete trial, or the last ones that another trial reported; as the user
/// defined them, not losses.
std::vector<double> metrics_of(const Study& study, const Trial& trial);

/// "accuracy 0.9123", several separated by commas; the last report of an incomplete trial.
std::string values_text(const Study& study, const Trial& trial);

/// values_text() with violated limits, "accuracy 0.9123 (memory_bytes 5, above 4)"; or the error of
/// a failed trial.
std::string result_text(const Study& study, const Trial& trial);

/// "optimizer.lr=0.12 model.name=mlp", numbers with `digits` digits (0: all).
std::string point_text(const Study& study, const Trial& trial, int digits);

/// The best trial, or the Pareto front, one line per trial. Empty if none is complete.
std::string best_text(const Study& study);

/// The number of training steps saved by sharing, and the last `trials` trials that shared steps.
/// Empty if none did.
std::string shared_text(const Study& study, size_t trials);

/// The best pruned trials if no trial is complete, or that none of them reached the target of
/// "seconds to METRIC NUMBER". Empty if a trial is complete, or none was pruned.
std::string pruned_text(const Study& study);
/// A message that all complete trials violate a limit; empty if that is not so.
std::string above_limits_text(const Study& study);

/// A table of the last trials and of all running ones: number, state, values, reports, seconds and
/// parameters. Lines are truncated at `columns`. If it has more than `most` lines (at least 1)
/// below the header, the first one gives the number of omitted trials.
std::string trials_table(const Study& study, size_t trials, size_t columns,
                         size_t most = std::numeric_limits<size_t>::max());

/// A trial as JSON. Losses are converted to metrics.
nlohmann::ordered_json trial_object(const Study& study, const Trial& trial);

/// A trial and its study as JSON; with `indent` at least 0 in multiple lines. Losses are converted
/// to metrics.
std::string trial_json(const Study& study, const Trial& trial);
std::string study_json(const Study& study, int indent = 1);

/// All trials as CSV (RFC 4180): number, state, metrics, limits, parameters, seconds, attempts,
/// worker, message. A name that duplicates another column gets the prefix "metric.", "limit." or
/// "parameter.".
std::string study_csv(const Study& study);

}  // namespace gallop::tune
