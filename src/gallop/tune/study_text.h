#pragma once

#include <limits>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "gallop/tune/registries.h"
#include "gallop/tune/study.h"

namespace gallop::tune {

/// The trial of this number. Throws UsageError where there is none.
const Trial& trial_at(const Study& study, int64_t number);

/// The name of a sampler or a pruner as settings have it, {"name": "tpe", ...}; empty for none.
std::string name_in(const std::string& component);

/// Numbers of the best trial, or of those of the Pareto front. Empty where none is complete.
std::vector<int64_t> best_trials(const Study& study);

/// "12 of 30 trials finished (3 pruned, 1 failed), 2 running, 1 waiting"
std::string progress_text(const Study& study);

/// The same, with "; all points of the grid have been tried" or its like where no more trials come
/// although more are wanted, as far as the sampler is one of `registries`.
std::string standing_text(const Study& study, const TuneRegistries& registries);

/// A complete trial's metrics, or the last that another has reported; as users have them, not
/// losses.
std::vector<double> metrics_of(const Study& study, const Trial& trial);

/// "accuracy 0.9123", several with commas; the last report of a trial that is not complete.
std::string values_text(const Study& study, const Trial& trial);

/// The same with what is above a limit, "accuracy 0.9123 (memory_bytes 5, above 4)"; or why a trial
/// has failed.
std::string result_text(const Study& study, const Trial& trial);

/// "optimizer.lr=0.12 model.name=mlp", numbers with `digits` digits (0: all).
std::string point_text(const Study& study, const Trial& trial, int digits);

/// The best trial, or each of the Pareto front: a line a trial. Empty where none is complete.
std::string best_text(const Study& study);

/// How many steps were spared as trials share them, and with whom the last `trials` do. Empty where
/// none were.
std::string shared_text(const Study& study, size_t trials);

/// The pruned trials whose last reports are best, where no trial is complete, or that none of them
/// has reached the target of "seconds to METRIC NUMBER". Empty where a trial is complete, or none
/// was pruned.
std::string pruned_text(const Study& study);
/// That there are complete trials, and all of them above a limit.
std::string above_limits_text(const Study& study);

/// A table of the last trials, and of all that run: number, state, values, reports, seconds and
/// parameters. Lines are cut at `columns`. Where it would have more than `most` lines below its
/// head, at least 1, the first of them says how many trials are left out.
std::string trials_table(const Study& study, size_t trials, size_t columns,
                         size_t most = std::numeric_limits<size_t>::max());

/// All of a trial. Losses appear as metrics.
nlohmann::ordered_json trial_object(const Study& study, const Trial& trial);

/// All of a trial and of a study, as JSON; with `indent` at least 0 in lines. Losses appear as
/// metrics.
std::string trial_json(const Study& study, const Trial& trial);
std::string study_json(const Study& study, int indent = 1);

/// All trials as CSV (RFC 4180): number, state, metrics, limits, parameters, seconds, attempts,
/// worker, message. A name that another column has already gets "metric.", "limit." or "parameter."
/// before it.
std::string study_csv(const Study& study);

}  // namespace gallop::tune
