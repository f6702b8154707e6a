#include "gallop/train/tasks/task_defaults.h"

#include <ATen/ops/cat.h>
#include <ATen/ops/zeros_like.h>

#include "gallop/base/error.h"

namespace gallop::train {

namespace {

using Target = MetricTask::Target;
using Form = Prediction::Form;

// The logit of "yes" [1] as logits of two classes [2].
at::Tensor two_classes(const at::Tensor& outputs) {
  const at::Tensor yes = outputs.reshape({1});
  return at::cat({at::zeros_like(yes), yes});
}

[[noreturn]] void throw_no_target() {
  throw InternalError("a task has targets of an unknown kind");
}

}  // namespace

std::string default_loss(Target target) {
  switch (target) {
    case Target::kClasses:
    case Target::kTokens: return "cross-entropy";
    case Target::kBinary:
    case Target::kLabels: return "bce-with-logits";
    case Target::kNumbers: return "mse";
    case Target::kPairs: return "info-nce";
    case Target::kSequences: return "ctc";
  }
  throw_no_target();
}

std::string default_metric(Target target) {
  if (target == Target::kSequences) return "label-error-rate";
  return target == Target::kBinary || target == Target::kLabels ? "f1" : "auto";
}

Prediction default_prediction(Target target, bool per_element, bool causal) {
  switch (target) {
    case Target::kClasses: return {per_element ? Form::kClassPerElement : Form::kClass};
    case Target::kTokens: return {causal ? Form::kNextToken : Form::kMaskedTokens};
    case Target::kBinary: return {.form = Form::kClass, .postprocess = two_classes};
    case Target::kLabels: return {Form::kLabels};
    case Target::kNumbers: return {Form::kNumbers};
    case Target::kPairs: return {Form::kEmbeddings};
    case Target::kSequences: return {Form::kSequence};
  }
  throw_no_target();
}

Report default_report(Target target, bool per_element) {
  switch (target) {
    case Target::kClasses:
      if (per_element) {
        return {.metrics = {kConfusionMatrix, kReliabilityDiagram},
                .images = Report::Images::kMasks};
      }
      return {
          .metrics = {kConfusionMatrix, kRocCurves, kPrecisionRecallCurves, kReliabilityDiagram},
          .images = Report::Images::kMistakes};
    case Target::kBinary:
      return {
          .metrics = {kConfusionMatrix, kRocCurves, kPrecisionRecallCurves, kReliabilityDiagram}};
    case Target::kTokens: return {.metrics = {kReliabilityDiagram}};
    case Target::kLabels:
      return {
          .metrics = {kConfusionByLabel, kRocCurves, kPrecisionRecallCurves, kReliabilityDiagram}};
    case Target::kNumbers: return {.metrics = {kResiduals}};
    case Target::kPairs: return {.metrics = {kPairRetrieval}};
    case Target::kSequences: return {.metrics = {kAlignedConfusion}};
  }
  throw_no_target();
}

}  // namespace gallop::train
