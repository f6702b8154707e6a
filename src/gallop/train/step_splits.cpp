// What a step does where memory runs out.
#include <fmt/format.h>

#include "gallop/base/error.h"
#include "gallop/optim/gradients.h"
#include "gallop/train/out_of_memory.h"
#include "gallop/train/step.h"

namespace gallop::train {

TrainStep::Tensors TrainStep::compute_in_memory(const Tensors& arguments, bool count_guesses,
                                                int64_t step) {
  kept_.keep_again();
  for (;;) {
    Tensors results;
    updating_ = false;
    const auto full = run_in_memory([&] {
      results = compiled_ ? (*compiled_)(arguments, mode_of(count_guesses))
                          : compute(arguments, count_guesses);
    });
    if (!full) return results;
    if (config_.strategy != nullptr) refuse_to_split(*full, step);
    kept_.put_back();
    split_for(*full, arguments.front().size(0), step);
    seed_step(config_.seed, step, device_);
  }
}

// Of a step as a function of tensors. Where shards lie follows from the rows of the whole batch.
int64_t TrainStep::mode_of(bool count_guesses) const {
  return (shards() > 0 ? 2 * whole_rows_ : 0) + (count_guesses ? 1 : 0);
}

// Others may be in the middle of what this one has not come to.
void TrainStep::refuse_to_split(const std::string& why, int64_t step) const {
  throw DeviceError(
      fmt::format("rank {}, step {}: out of memory. Batches are split by themselves only in a "
                  "training of one process: set train.accumulate to {}. {}",
                  config_.strategy->collectives().rank(), step + 1, 2 * config_.accumulate, why));
}

// What the failed step has taken is given back first.
void TrainStep::split_for(const std::string& why, int64_t rows, int64_t step) {
  Tensors trained;
  for (const auto& list :
       {config_.sam ? NamedTensors() : parameters_, optimizer_.state(), state()}) {
    for (const auto& [name, tensor] : list) trained.push_back(tensor);
  }
  if (updating_ || (compiled_ && compiled_->has_changed(trained))) {
    throw DeviceError(
        fmt::format("step {}: out of memory within the update of the weights, which are not to be "
                    "used any more; resume from the last checkpoint. {}",
                    step + 1, why));
  }
  optim::drop_gradients(parameters_);
  if (config_.accumulate * splits_ >= rows) {
    throw StepDoesNotFit(fmt::format(
        "step {}: out of memory with one sample at a time. Try train.recompute.every=1, "
        "train.precision=bf16, or a smaller model. {}",
        step + 1, why));
  }
  set_splits(2 * splits_);
  why_split_ = why;
}

void TrainStep::set_splits(int64_t splits) {
  if (compiled_ && splits != splits_) compiled_->forget();
  splits_ = splits;
}

}  // namespace gallop::train
