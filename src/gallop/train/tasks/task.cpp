#include "gallop/train/tasks/task.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "gallop/base/error.h"
#include "gallop/base/text.h"

namespace gallop::train {

TaskTable& TaskTable::add(Task task) {
  const auto is_same = [&](const Task& other) { return other.name == task.name; };
  if (std::any_of(tasks_.begin(), tasks_.end(), is_same)) {
    throw UsageError(fmt::format("task '{}' is registered twice", task.name));
  }
  tasks_.push_back(std::move(task));
  return *this;
}

const Task& TaskTable::find(const std::string& name) const {
  std::vector<std::string> names;
  for (const Task& task : tasks_) {
    if (task.name == name) return task;
    names.push_back(task.name);
  }
  const std::string nearest = nearest_name(name, names);
  throw UsageError(fmt::format("unknown task '{}'{} Known: {}", printable(name),
                               nearest.empty() ? "." : "; did you mean '" + nearest + "'?",
                               join_names(names, "and")));
}

namespace {

using Target = MetricTask::Target;
using Form = Prediction::Form;
using Images = Report::Images;

void add_tasks(TaskTable& tasks) {
  tasks
      .add({.name = "classification",
            .summary = "one class for each sample",
            .target = Target::kClasses,
            .loss = "cross-entropy",
            .prediction = {Form::kClass},
            .report = {.metrics = {kConfusionMatrix, kRocCurves, kPrecisionRecallCurves,
                                   kReliabilityDiagram},
                       .images = Images::kMistakes}})
      .add({.name = "multi-label",
            .summary = "any number of labels for each sample",
            .target = Target::kLabels,
            .loss = "bce-with-logits",
            .metric = "f1",
            .metrics = {"average-precision"},
            .prediction = {Form::kLabels},
            .report = {.metrics = {kConfusionByLabel, kRocCurves, kPrecisionRecallCurves,
                                   kReliabilityDiagram}}})
      .add({.name = "regression",
            .summary = "one or several numbers for each sample",
            .target = Target::kNumbers,
            .loss = "mse",
            .metric = "loss",
            .metrics = {"mae", "r2"},
            .prediction = {Form::kNumbers},
            .report = {.metrics = {kResiduals}}})
      .add({.name = "count-regression",
            .summary = "one or several counts for each sample (Poisson regression)",
            .target = Target::kNumbers,
            .loss = "poisson-nll",
            .metric = "loss",
            .metrics = {"mae"},
            .prediction = {Form::kNumbers},
            .report = {.metrics = {kResiduals}}})
      .add({.name = "segmentation",
            .summary = "a class for each pixel",
            .target = Target::kClasses,
            .loss = "cross-entropy",
            .metric = "mean-iou",
            .metrics = {"dice"},
            .per_element = true,
            .prediction = {Form::kClassPerElement},
            .report = {.metrics = {kConfusionMatrix, kReliabilityDiagram},
                       .images = Images::kMasks}})
      .add({.name = "sequence-recognition",
            .summary = "classes in order, without alignment (speech, handwriting)",
            .target = Target::kSequences,
            .loss = "ctc",
            .metric = "label-error-rate",
            .metrics = {"exact-match"},
            .prediction = {Form::kSequence},
            .report = {.metrics = {kAlignedConfusion}}});
}

void add_text_tasks(TaskTable& tasks) {
  tasks
      .add({.name = "causal-lm",
            .summary = "the next token at each position of a text",
            .target = Target::kTokens,
            .loss = "cross-entropy",
            .metric = "loss",
            .per_element = true,
            .causal = true,
            .prediction = {Form::kNextToken},
            .report = {.metrics = {kReliabilityDiagram}}})
      .add({.name = "masked-lm",
            .summary = "the hidden tokens of a text",
            .target = Target::kTokens,
            .loss = "cross-entropy",
            .metric = "loss",
            .per_element = true,
            .prediction = {Form::kMaskedTokens},
            .report = {.metrics = {kReliabilityDiagram}}})
      .add({.name = "text-classification",
            .summary = "one class for each text",
            .target = Target::kClasses,
            .loss = "cross-entropy",
            .prediction = {Form::kClass},
            .report = {.metrics = {kConfusionMatrix, kRocCurves, kPrecisionRecallCurves,
                                   kReliabilityDiagram}}})
      .add({.name = "token-classification",
            .summary = "a class for each token of a text",
            .target = Target::kClasses,
            .loss = "cross-entropy",
            .metrics = {"f1"},
            .per_element = true,
            .prediction = {Form::kClassPerElement},
            .report = {.metrics = {kConfusionMatrix, kReliabilityDiagram}}})
      .add({.name = "pair-embedding",
            .summary = "embeddings that match in a pair of texts or samples",
            .target = Target::kPairs,
            .loss = "info-nce",
            .metric = "loss",
            .metrics = {"recall-at-k"},
            .prediction = {Form::kEmbeddings},
            .report = {.metrics = {kPairRetrieval}}});
}

}  // namespace

TaskTable built_in_tasks() {
  TaskTable tasks;
  add_tasks(tasks);
  add_text_tasks(tasks);
  return tasks;
}

}  // namespace gallop::train
