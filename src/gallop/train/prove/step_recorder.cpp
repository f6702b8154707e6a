#include "gallop/train/prove/step_recorder.h"

#include <utility>

#include <ATen/ops/cat.h>

namespace gallop::train {

namespace {

// Rows of part `part` of `parts`, as data::LoaderConfig divides a batch.
int64_t rows_of_part(int64_t rows, int64_t part, int64_t parts) {
  return rows * (part + 1) / parts - rows * part / parts;
}

}  // namespace

void StepRecorder::step_begins(int64_t step) {
  now_ = copy_state(model_, optimizer_);
  if (steps_.empty() || steps_.back().step != step - 1) return;
  RecordedStep& last = steps_.back();
  last.after = now_;
  if (outputs_ == nullptr) return;
  take_outputs(last);
  last.gradients = gradients_->gradients();
}

void StepRecorder::step_starts(const StepArguments& arguments) {
  RecordedStep step{.step = arguments.step,
                    .lr = arguments.lr,
                    .scheduled = arguments.scheduled,
                    .division = division_,
                    .before = now_};
  for (const auto& [name, tensor] : arguments.batch) step.batch.push_back({name, tensor.clone()});
  const int64_t whole = ranks_ > 1 ? arguments.whole_rows : step.batch.front().tensor.size(0);
  for (int64_t rank = 0; rank < ranks_; ++rank) {
    step.division.rows.push_back(rows_of_part(whole, rank, ranks_));
  }
  steps_.push_back(std::move(step));
}

void StepRecorder::stepped(const StepEvent& event) {
  RecordedStep& step = steps_[complete_++];
  step.loss = event.loss;
  step.gradient_norm = event.gradient_norm;
  step.is_skipped = event.skipped_updates > skipped_updates_;
  skipped_updates_ = event.skipped_updates;
}

std::vector<RecordedStep> StepRecorder::take() {
  steps_.resize(complete_);
  return std::move(steps_);
}

void StepRecorder::take_outputs(RecordedStep& step) const {
  std::vector<at::Tensor> outputs;
  std::vector<NamedTensors> activations;
  size_t call = 0;
  for (const int64_t rows : rows_of_passes(step.division, rank_)) {
    std::vector<int64_t> sizes = step.batch.front().tensor.sizes().vec();
    sizes.front() = rows;
    const at::Tensor output = outputs_->output(call, sizes);
    if (!output.defined()) return;
    outputs.push_back(output);
    activations.push_back(outputs_->activations(call++, sizes));
  }
  if (outputs.empty()) return;
  step.outputs = at::cat(outputs);
  for (size_t i = 0; i < activations.front().size(); ++i) {
    std::vector<at::Tensor> of_passes;
    for (const NamedTensors& pass : activations) of_passes.push_back(pass[i].tensor);
    step.activations.push_back({activations.front()[i].name, at::cat(of_passes)});
  }
}

}  // namespace gallop::train
