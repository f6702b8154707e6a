#include "gallop/train/evaluate.h"

#include <algorithm>

#include <ATen/core/grad_mode.h>
#include <ATen/ops/log_sigmoid.h>
#include <ATen/ops/log_softmax.h>
#include <ATen/ops/logaddexp.h>
#include <ATen/ops/tensor.h>

#include "gallop/base/clock.h"
#include "gallop/base/progress.h"
#include "gallop/data/device_loader.h"
#include "gallop/data/sized_batches.h"
#include "gallop/kernel/shared_cores.h"
#include "gallop/train/inference_passes.h"
#include "gallop/train/losses/shapes.h"
#include "gallop/train/metrics/loss_metrics.h"

namespace gallop::train {

namespace {

const MetricTask& task_of(const EvaluateConfig& config) {
  static const MetricTask classes;
  return config.metrics ? config.metrics->task() : classes;
}

// Whether targets are probabilities of the classes.
bool is_soft(const data::Batch& batch, const EvaluateConfig& config) {
  return task_of(config).has_classes() && batch.target().is_floating_point();
}

// The class labels; of probabilities, the most likely class.
at::Tensor labels_of(const data::Batch& batch, const EvaluateConfig& config) {
  const at::Tensor& target = batch.target();
  return is_soft(batch, config) ? target.argmax(class_dimension(target)) : target;
}

// Adds the loss, and for class labels the correct predictions.
void add_outputs(const at::Tensor& outputs, const data::Batch& batch, const EvaluateConfig& config,
                 Tally& sum, std::vector<TermSum>& term_sums) {
  const bool counts_correct = task_of(config).has_classes();
  Tally tally;
  if (counts_correct) {
    const at::Tensor labels = labels_of(batch, config);
    const bool has_loss = config.loss != nullptr || is_soft(batch, config);
    tally = has_loss ? count_correct_of(outputs, labels) : tally_of(outputs, labels);
  }
  if (!config.loss && is_soft(batch, config)) {
    tally.loss_sum = cross_entropy_sum(outputs, batch.target(), 0).item<double>();
  }
  if (config.loss) {
    const NamedTensors fields = batch.by_role();
    const std::vector<LossTerm> terms = config.loss->terms();
    term_sums.resize(terms.size());
    for (size_t i = 0; i < terms.size(); ++i) {
      const LossSum loss = (*terms[i].loss)({outputs}, fields);
      term_sums[i].sum += loss.sum.item<double>();
      term_sums[i].count += loss.count.item<double>();
    }
    if (!counts_correct) {
      // A loss may count several outputs for each target.
      tally.count = std::min(terms.front().loss->expected_count(batch.target(), batch.size()),
                             batch.target().numel());
    }
  }
  sum.add(tally);
}

// Computes the mean loss from all terms, each with its own count.
void set_loss(const Loss& loss, const std::vector<TermSum>& term_sums, Tally& tally) {
  double mean = 0;
  const std::vector<LossTerm> terms = loss.terms();
  for (size_t i = 0; i < term_sums.size(); ++i) {
    const auto [sum, count] = term_sums[i];
    if (count != 0) mean += terms[i].weight * sum / count;
  }
  tally.loss_sum = mean * static_cast<double>(tally.count);
}

void finish(const EvaluateConfig& config, Evaluation& evaluation) {
  evaluation.has_classes = task_of(config).has_classes();
  if (!config.loss) return;
  set_loss(*config.loss, evaluation.terms, evaluation.tally);
  if (evaluation.one_view) {
    set_loss(*config.loss, evaluation.one_view_terms, *evaluation.one_view);
  }
}

// Marks targets with the label EvaluateConfig::ignored.
void mark_ignored(data::Batch& batch, const EvaluateConfig& config) {
  if (config.ignored == data::kIgnoredTarget || !task_of(config).has_classes()) return;
  if (is_soft(batch, config)) return;
  at::Tensor& target = batch.tensors[batch.fields->target_index()];
  target = target.masked_fill(target.eq(config.ignored), data::kIgnoredTarget);
}

data::Batch with_labels(const data::Batch& batch, const EvaluateConfig& config) {
  data::Batch labeled = batch;
  labeled.tensors[batch.fields->target_index()] = labels_of(batch, config);
  return labeled;
}

// Reverses the standardization of targets.
at::Tensor in_original_units(const at::Tensor& numbers, const MetricTask& task) {
  const at::Tensor wide = numbers.cpu().to(at::kDouble);
  const at::Tensor mean = at::tensor(task.target_mean), scale = at::tensor(task.target_deviation);
  return wide.view({-1, mean.size(0)}).mul(scale).add(mean).view(wide.sizes());
}

// What metrics see of a batch.
Predictions batch_predictions(const at::Tensor& outputs, const data::Batch& batch,
                              const EvaluateConfig& config) {
  Predictions seen{
      .outputs = config.loss ? config.loss->predictions(outputs, batch.by_role()) : outputs,
      .target = labels_of(batch, config)};
  const MetricTask& task = task_of(config);
  if (task.target_mean.empty()) return seen;
  return {.outputs = in_original_units(seen.outputs, task),
          .target = in_original_units(seen.target, task)};
}

int64_t views_per_image(const TestViews& views) {
  const int64_t sides = views.flip ? 2 : 1, shifts = views.pixels > 0 ? 3 : 1;
  return sides * shifts;
}

// Runs a model on a batch, adds the results and returns the outputs.
at::Tensor add_batch(model::Model& model, const data::Batch& batch, const EvaluateConfig& config,
                     InferencePasses& passes, Evaluation& evaluation) {
  if (!config.views.is_any()) {
    passes.begin();
    at::Tensor outputs = model.forward(batch.by_role());
    add_outputs(outputs, batch, config, evaluation.tally, evaluation.terms);
    return outputs;
  }
  at::Tensor mean;
  for (const auto& [images, weight] : views_of(batch.input(), config.views)) {
    passes.begin();
    const at::Tensor logits = model.forward(images).to(at::kFloat);
    if (!mean.defined() && task_of(config).has_classes()) {
      if (!evaluation.one_view) evaluation.one_view.emplace();
      add_outputs(logits, batch, config, *evaluation.one_view, evaluation.one_view_terms);
    }
    mean = mean.defined() ? mean.add(logits, weight) : logits.mul(weight);
  }
  add_outputs(mean, batch, config, evaluation.tally, evaluation.terms);
  return mean;
}

// Takes part in the passes of others over a batch, without samples.
void join_passes(const std::vector<Member>& members, const NamedTensors& batch,
                 const EvaluateConfig& config, InferencePasses& passes) {
  const NamedTensors nothing = slice_rows(batch, 0, 0);
  for (const Member& member : members) {
    const precision::AutocastGuard autocast(member.precision, config.device.type());
    for (int64_t view = 0; view < views_per_image(config.views); ++view) {
      passes.begin();
      member.model.forward(nothing);
    }
  }
  note_progress();
}

/// The mean over several models of their outputs for a batch: of probabilities if outputs are
/// logits, of the outputs if they are numbers. Sums are those of log-probabilities, which do not
/// underflow.
class EnsembleOutputs {
 public:
  EnsembleOutputs(const MetricTask& task, size_t members) : task_(task), members_(members) {}

  void add(const at::Tensor& outputs) {
    const at::Tensor one = outputs.to(at::kFloat);
    if (are_numbers()) {
      sum_ = sum_of(sum_, one);
    } else if (are_classes()) {
      add_log(at::log_softmax(one, class_dimension(one)), sum_);
    } else {
      add_log(at::log_sigmoid(one), sum_);
      add_log(at::log_sigmoid(one.neg()), complement_);
    }
  }

  /// In the form of one model's outputs: logits, or numbers.
  at::Tensor mean() const {
    if (are_numbers()) return sum_.div(static_cast<double>(members_));
    if (are_classes()) return sum_;  // Softmax removes the missing divisor.
    return sum_.sub(complement_);
  }

 private:
  bool are_numbers() const {
    return task_.target == MetricTask::Target::kNumbers ||
           task_.target == MetricTask::Target::kPairs;
  }
  bool are_classes() const {
    return task_.has_classes() || task_.target == MetricTask::Target::kSequences;
  }
  static void add_log(const at::Tensor& one, at::Tensor& sum) {
    sum = sum.defined() ? at::logaddexp(sum, one) : one;
  }

  const MetricTask& task_;
  size_t members_;
  at::Tensor sum_, complement_;  // `complement_`: of the labels that do not apply.
};

// Visits the elements of a tally, for sums over processes.
template <typename Visit>
void for_each_number(Tally& tally, const Visit& visit) {
  visit(tally.loss_sum);
  for (int64_t* number : {&tally.count, &tally.top1, &tally.top5}) {
    auto value = static_cast<double>(*number);
    visit(value);
    *number = static_cast<int64_t>(value);
  }
}

template <typename Visit>
void for_each_number(Evaluation& evaluation, size_t terms, bool has_views, const Visit& visit) {
  for_each_number(evaluation.tally, visit);
  const auto for_each_term = [&](std::vector<TermSum>& sums) {
    sums.resize(terms);
    for (TermSum& term : sums) {
      visit(term.sum);
      visit(term.count);
    }
  };
  for_each_term(evaluation.terms);
  if (has_views && !evaluation.one_view) evaluation.one_view.emplace();
  if (evaluation.one_view) {
    for_each_number(*evaluation.one_view, visit);
    for_each_term(evaluation.one_view_terms);
  }
  auto skipped = static_cast<double>(evaluation.skipped);
  visit(skipped);
  evaluation.skipped = static_cast<int64_t>(skipped);
}

// Gives every process the results of all batches; returns whether any process was stopped.
bool share(std::vector<EnsembleEvaluation>& batches, const EvaluateConfig& config, bool stopped) {
  if (config.collectives == nullptr) return stopped;
  std::vector<double> numbers = {stopped ? 1.0 : 0.0};
  const size_t terms = config.loss ? config.loss->terms().size() : 0;
  const bool has_one_view = config.views.is_any() && task_of(config).has_classes();
  const auto for_all = [&](const auto& visit) {
    for (EnsembleEvaluation& batch : batches) {
      for (Evaluation& one : batch.each) for_each_number(one, terms, has_one_view, visit);
      for_each_number(batch.ensemble, terms, /*has_views=*/false, visit);
    }
  };
  for_all([&numbers](double& number) { numbers.push_back(number); });
  numbers = parallel::sum_over_all(*config.collectives, numbers);
  size_t next = 1;
  for_all([&](double& number) { number = numbers[next++]; });
  return numbers.front() > 0;
}

void add(std::vector<TermSum>& sums, const std::vector<TermSum>& more) {
  if (sums.size() < more.size()) sums.resize(more.size());
  for (size_t i = 0; i < more.size(); ++i) {
    sums[i].sum += more[i].sum;
    sums[i].count += more[i].count;
  }
}

void add(Evaluation& sum, const Evaluation& more) {
  sum.tally.add(more.tally);
  if (more.one_view) {
    if (!sum.one_view) sum.one_view.emplace();
    sum.one_view->add(*more.one_view);
  }
  sum.skipped += more.skipped;
  add(sum.terms, more.terms);
  add(sum.one_view_terms, more.one_view_terms);
}

/// The batches of an evaluation: of the samples in their order or, if their inputs differ in size,
/// of samples of one size each.
class EvaluationBatches {
 public:
  EvaluationBatches(const data::Samples& samples, int64_t batch)
      : samples_(samples),
        batch_(batch),
        sized_(samples.input_sizes(0).empty()
                   ? nullptr
                   : std::make_shared<const data::SizedBatches>(samples, batch)) {
    if (sized_) in_order_.emplace(samples, *sized_);
  }

  const data::Samples& samples() const { return in_order_ ? *in_order_ : samples_; }
  std::shared_ptr<const data::BatchPlan> plan() const { return sized_; }
  int64_t count() const {
    return sized_ ? sized_->batches() : (samples_.size() + batch_ - 1) / batch_;
  }
  int64_t begin(int64_t number) const { return sized_ ? sized_->begin(number) : number * batch_; }

  // Replaces the positions of a batch's rows by the indices of their samples.
  void restore_indices(data::Batch& batch) const {
    if (!sized_) return;
    std::vector<int64_t> indices;
    for (int64_t row = 0; row < batch.rows(); ++row) {
      indices.push_back(sized_->index(batch.position_of(row)));
    }
    batch.row_positions = std::move(indices);
  }

 private:
  const data::Samples& samples_;
  int64_t batch_;
  std::shared_ptr<const data::SizedBatches> sized_;
  std::optional<data::SizedSamples> in_order_;
};

// The batches of this process: adjacent and whole, so that results do not depend on their number.
struct Range {
  int64_t begin, end;
};

Range own_batches(int64_t batches, const parallel::Collectives* collectives) {
  if (collectives == nullptr) return {0, batches};
  const int64_t rank = collectives->rank(), size = collectives->size();
  return {batches * rank / size, batches * (rank + 1) / size};
}

// The states of the metrics of each model and of the ensemble.
class EnsembleSums {
 public:
  EnsembleSums(const EvaluateConfig& config, size_t members) {
    const Metrics reported = config.metrics ? config.metrics->reported() : Metrics();
    if (reported.empty() && config.drawn.empty()) return;
    // A single model is its own ensemble.
    const size_t all = members == 1 ? 0 : members;
    for (size_t i = 0; i <= all; ++i) {
      sums_.emplace_back(reported, i == all ? config.drawn : Metrics());
    }
  }

  void add(size_t model, const Predictions& batch) {
    if (!sums_.empty()) sums_[model].add(batch);
  }
  void merge_all(parallel::Collectives& collectives) {
    for (MetricSums& sums : sums_) sums.merge_all(collectives);
  }
  void write_to(EnsembleEvaluation& evaluation) const {
    for (size_t i = 0; i < sums_.size(); ++i) {
      Evaluation& one = i < evaluation.each.size() ? evaluation.each[i] : evaluation.ensemble;
      one.metrics = sums_[i].values(one.tally);
      one.figures = sums_[i].figures();
    }
  }

 private:
  std::vector<MetricSums> sums_;
};

// Adds the results of all models for a batch, and of their mean.
void add_to_all(const std::vector<Member>& members, const data::Batch& batch,
                const EvaluateConfig& config, InferencePasses& passes, EnsembleSums& sums,
                EnsembleEvaluation& result) {
  EnsembleOutputs together(task_of(config), members.size());
  for (size_t i = 0; i < members.size(); ++i) {
    const precision::AutocastGuard autocast(members[i].precision, config.device.type());
    const at::Tensor outputs = add_batch(members[i].model, batch, config, passes, result.each[i]);
    sums.add(i, batch_predictions(outputs, batch, config));
    note_progress();
    if (members.size() > 1) {
      together.add(outputs);
    } else if (config.see) {
      config.see(with_labels(batch, config), outputs);
    }
  }
  if (members.size() == 1) return;
  const at::Tensor mean = together.mean();
  add_outputs(mean, batch, config, result.ensemble.tally, result.ensemble.terms);
  sums.add(members.size(), batch_predictions(mean, batch, config));
  if (config.see) config.see(with_labels(batch, config), mean);
}

}  // namespace

std::optional<double> Evaluation::value_of(const std::string& name) const {
  for (const MetricValue& one : metrics) {
    if (one.name == name) return one.value;
  }
  if (name == "loss") return tally.loss();
  if (!has_classes) return std::nullopt;
  if (name == "accuracy") return tally.accuracy();
  if (name == "top5") return tally.top5_accuracy();
  return std::nullopt;
}

std::optional<Evaluation> evaluate(model::Model& model, const data::Samples& samples,
                                   const EvaluateConfig& config, const StopRequest& stop) {
  auto all = evaluate_ensemble({{model, config.precision}}, samples, config, stop);
  if (!all) return std::nullopt;
  return all->ensemble;
}

std::optional<EnsembleEvaluation> evaluate_ensemble(const std::vector<Member>& members,
                                                    const data::Samples& samples,
                                                    const EvaluateConfig& config,
                                                    const StopRequest& stop) {
  const at::NoGradGuard no_gradients;
  const double start = monotonic_seconds();
  data::LoaderConfig in_order = config.loader;
  in_order.shuffle = false;
  in_order.drop_last = false;
  in_order.one_epoch = true;
  const EvaluationBatches plan(samples, in_order.batch);
  in_order.plan = plan.plan();
  const int64_t count = plan.count();
  const Range own = own_batches(count, config.collectives);
  for (const Member& member : members) member.model.set_training(false);
  std::vector<EnsembleEvaluation> batches(
      static_cast<size_t>(count),
      EnsembleEvaluation{.each = std::vector<Evaluation>(members.size()), .ensemble = {}});
  EnsembleSums sums(config, members.size());
  std::optional<data::DeviceLoader> loader;
  const int64_t processes = config.collectives != nullptr ? config.collectives->size() : 1;
  const int64_t most = (count + processes - 1) / processes;  // Batches of a process.
  const int64_t rounds = config.divides_forward_by_samples ? most : own.end - own.begin;
  if (rounds > 0) {
    // A process without batches needs the fields of one.
    const int64_t first = own.begin < own.end ? own.begin : 0;
    loader.emplace(plan.samples(), in_order, data::LoaderState{.position = plan.begin(first)},
                   config.device);
  }
  InferencePasses passes(most * static_cast<int64_t>(members.size()) *
                         views_per_image(config.views));
  const bool is_in_parts = config.forward_group != nullptr;
  NamedTensors fields;  // Fields of the last batch, where others may have more.
  bool stopped = false;
  for (int64_t round = 0; round < rounds; ++round) {
    // Processes that need each other stop at the same batch.
    stopped = is_in_parts && parallel::any_of(*config.forward_group, stop.requested());
    if (stopped) break;
    const int64_t number = own.begin + round;
    if (number >= own.end && !fields.empty()) {
      join_passes(members, fields, config, passes);
      continue;
    }
    auto batch = loader->next(is_in_parts ? nullptr : &stop);
    note_progress();
    if (!batch) break;
    plan.restore_indices(*batch);
    if (config.divides_forward_by_samples) {
      fields = batch->by_role();
      if (number >= own.end || batch->size() == 0) join_passes(members, fields, config, passes);
      if (number >= own.end) continue;
    }
    EnsembleEvaluation& result = batches[static_cast<size_t>(number)];
    for (Evaluation& one : result.each) one.skipped += batch->skipped;
    if (batch->size() == 0) continue;
    kernel::share_cores_with_others();
    mark_ignored(*batch, config);
    add_to_all(members, *batch, config, passes, sums, result);
  }
  passes.finish();
  for (const Member& member : members) member.model.set_training(true);
  if (share(batches, config, stopped || (!is_in_parts && stop.requested()))) {
    return std::nullopt;
  }
  if (config.collectives != nullptr) sums.merge_all(*config.collectives);
  EnsembleEvaluation result{.each = std::vector<Evaluation>(members.size()), .ensemble = {}};
  for (const EnsembleEvaluation& batch : batches) {
    for (size_t i = 0; i < members.size(); ++i) add(result.each[i], batch.each[i]);
    add(result.ensemble, batch.ensemble);
  }
  for (Evaluation& one : result.each) finish(config, one);
  finish(config, result.ensemble);
  sums.write_to(result);
  if (members.size() == 1) result.ensemble = result.each.front();
  result.ensemble.skipped = result.each.front().skipped;
  result.ensemble.seconds = monotonic_seconds() - start;
  return result;
}

}  // namespace gallop::train
