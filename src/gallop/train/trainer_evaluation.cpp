#include <algorithm>
#include <limits>
#include <string>

#include <fmt/format.h>

#include "gallop/base/hardware.h"
#include "gallop/base/memory.h"
#include "gallop/base/trace.h"
#include "gallop/train/averaged_weights.h"
#include "gallop/train/inference_passes.h"
#include "gallop/train/replica_state.h"
#include "gallop/train/statistics.h"
#include "gallop/train/trainer_impl.h"

namespace gallop::train {

namespace {

constexpr double kUndefined = std::numeric_limits<double>::quiet_NaN();

schedule::Metrics metrics_of(const Evaluation& evaluation) {
  schedule::Metrics metrics{.loss = evaluation.tally.loss()};
  if (evaluation.has_classes) {
    metrics.accuracy = evaluation.tally.accuracy();
    metrics.others = {{"top5", evaluation.tally.top5_accuracy()}};
  }
  for (const MetricValue& one : evaluation.metrics) {
    metrics.others.push_back({.name = one.name,
                              .value = one.value.value_or(kUndefined),
                              .higher_is_better = one.higher_is_better});
  }
  return metrics;
}

// An exported model has another program for evaluations, in which blocks may have been merged, and
// one for a fixed number of samples runs several times for a batch.
bool evaluates_by_block(model::Model& model) {
  if (model.fixed_batch() > 0) return false;
  const auto blocks = model.block_parameters();
  model.set_training(false);
  const bool are_same = model.block_parameters() == blocks;
  model.set_training(true);
  return are_same;
}

}  // namespace

// Returns false if a stop was requested first; the evaluation is then done after the resume.
bool Trainer::Impl::evaluate_now() {
  const TraceSpan span(SpanKind::kEvaluation, "evaluation");
  tell(&Observer::evaluating);
  satisfy(StepRequest::kEvaluate);
  process_group.begin(parallel::Section::kEvaluation, progress.step);
  gather_for_evaluation();
  const InferenceScope scope(process_group.strategy());
  if (is_last() && !recompute_statistics()) return false;
  const AveragedWeights averaged(parts.optimizer);
  const MeanOfReplicas mean(process_group.averager());
  const auto evaluation =
      train::evaluate(parts.model, *parts.evaluation_samples, evaluate_config, parts.stop);
  if (!evaluation) return false;
  const bool best = progress.note_evaluation(score(*evaluation), config.early_stopping.min_change);
  const schedule::Metrics metrics = metrics_of(*evaluation);
  for (const auto& [name, schedule] : schedules()) schedule->evaluated(share_done(), metrics);
  const EvaluationEvent event{.step = progress.step,
                              .epoch = epoch(),
                              .evaluation = *evaluation,
                              .best = best,
                              .training_seconds = training_seconds()};
  outcome.last = event;
  if (best) outcome.best = event;
  evaluation_trigger.done(progress.step);
  tell(&Observer::evaluated, event);
  if (const std::string report = parts.model.statistics_report(); !report.empty()) {
    tell(&Observer::noted, report);
  }
  if (best) save(true);
  return true;
}

// Gathers parameters of which processes have parts, unless that would take more than half of the
// memory that is left: block by block, they are gathered again for each batch.
void Trainer::Impl::gather_for_evaluation() {
  const std::vector<LogicalTensor> in_parts = process_group.parameters_in_parts();
  if (in_parts.empty()) return;
  int64_t missing = 0;
  for (const LogicalTensor& one : in_parts) {
    missing += static_cast<int64_t>(one.whole.nbytes()) - static_cast<int64_t>(one.local.nbytes());
  }
  const auto hosts = process_group.gather(host_name());
  const int64_t here = std::count(hosts.begin(), hosts.end(), host_name());
  const bool fits = missing * here <= available_memory() / 2;
  if (!process_group.any(!fits) || !evaluates_by_block(parts.model)) {
    process_group.gather_parameters();
  }
}

// For averages that require it. Returns false if a stop was requested first.
bool Trainer::Impl::recompute_statistics() {
  if (!parts.optimizer.averaging().recompute_statistics || recomputed_step == progress.step) {
    return true;
  }
  const AveragedWeights averaged(parts.optimizer);
  const InferenceScope scope(process_group.strategy());
  // Each process uses all samples, independently of the others.
  data::LoaderConfig whole = loader_config;
  whole.part = 0;
  whole.parts = 1;
  whole.changes.clear();
  const StopRequest never;
  const StatisticsConfig how{.loader = whole,
                             .seed = static_cast<uint64_t>(config.seed),
                             .precision = evaluate_config.precision,
                             .device = evaluate_config.device};
  if (!train::recompute_statistics(parts.model, parts.train_samples, how,
                                   process_group.is_alone() ? parts.stop : never)) {
    return false;
  }
  recomputed_step = progress.step;
  saved_step = -1;
  return true;
}

std::string Trainer::Impl::metric() const {
  return evaluate_config.metrics ? evaluate_config.metrics->deciding().name() : "accuracy";
}

// Higher is better; NaN if the metric is undefined.
double Trainer::Impl::score(const Evaluation& evaluation) const {
  const double value = evaluation.value_of(metric()).value_or(kUndefined);
  const auto& metrics = evaluate_config.metrics;
  return metrics && !metrics->deciding().higher_is_better() ? -value : value;
}

bool Trainer::Impl::is_out_of_patience() const {
  const int64_t patience = config.early_stopping.patience;
  return patience > 0 && progress.evaluations_without_gain >= patience;
}

void Trainer::Impl::note_without_best() {
  tell(&Observer::noted,
       fmt::format("no evaluation has a finite {}, so there is no best checkpoint", metric()));
}

std::string Trainer::Impl::why_early() const {
  if (is_last()) return {};
  return fmt::format("no better {} in {} evaluations", metric(), progress.evaluations_without_gain);
}

}  // namespace gallop::train
