#include "gallop/train/step/runner.h"

#include <utility>

#include <fmt/format.h>

#include "gallop/base/error.h"
#include "gallop/base/heap.h"
#include "gallop/optim/gradients.h"
#include "gallop/tensor/recording.h"
#include "gallop/train/determinism.h"
#include "gallop/train/losses/shapes.h"
#include "gallop/train/out_of_memory.h"
#include "gallop/train/step/seed.h"

namespace gallop::train {

StepRunner::StepRunner(const Parts& parts) : parts_(parts), snapshot_(parts.model.buffers()) {
  // The weights are moved and restored.
  if (parts.config.sam) snapshot_.keep(parts.function.parameters());
  snapshot_.keep(parts.function.update().state());
  if (!parts.config.compile) return;
  compiled_.emplace(
      [this](const std::vector<at::Tensor>& tensors, int64_t mode) {
        if (is_recording() && parts_.sharing.is_shared()) {
          parts_.sharing.strategy().collectives().note_compiling();
        }
        auto results = compute(StepInputs::unpack(tensors, parts_.like), mode % 2 != 0);
        // Gradients of a dry run are discarded; they would use memory besides those of the graph.
        if (is_recording()) optim::drop_gradients(parts_.function.parameters());
        return results;
      },
      tensors_in(parts.function.tensors()), *parts.config.compile);
}

std::vector<at::Tensor> StepRunner::run(const StepInputs& inputs, bool count_correct,
                                        int64_t step) {
  const auto seed = [&] {
    const at::Device device = parts_.function.parameters().front().tensor.device();
    seed_step(parts_.config.seed, step, device, parts_.sharing.batch_part());
  };
  snapshot_.capture();
  for (;;) {
    const auto scope = parts_.sharing.scope();
    std::vector<at::Tensor> results;
    parts_.function.update().reset();
    bool is_missing = false;  // Another process has failed.
    std::optional<std::string> full;
    try {
      full = run_in_memory([&] {
        if (parts_.function.passes().plan_pipeline(inputs.batch)) {
          snapshot_.restore();
          seed();
        }
        results = compiled_ ? (*compiled_)(inputs.pack(), parts_.function.mode(count_correct))
                            : compute(inputs, count_correct);
      });
    } catch (const parallel::PeerFailed&) {
      is_missing = true;
    } catch (...) {
      rethrow_nondeterminism();
    }
    if (!full && !is_missing) return results;
    require_unchanged(full.value_or("another process has none"), step);
    const bool is_one_sample = parts_.function.micro_batches().most() >= rows_of(inputs.batch);
    MemoryShortage shortage{.why = full.value_or(""), .of_one_sample = is_one_sample};
    if (scope) {
      shortage = ShortageExchange(parts_.config, parts_.sharing, parts_.function)
                     .run(*scope, full, is_one_sample, step);
    }
    snapshot_.restore();
    optim::drop_gradients(parts_.function.parameters());
    return_freed_memory();  // Threads that start later need address space for their stacks.
    split(shortage, step);
    seed();
  }
}

std::vector<at::Tensor> StepRunner::compute(const StepInputs& inputs, bool count_correct) {
  const StepOutputs outputs = parts_.function(inputs, count_correct);
  if (parts_.returns_one) return {outputs.in_one()};
  return outputs.pack();
}

void StepRunner::plan(const NamedTensors& batch) {
  snapshot_.capture();
  if (parts_.function.passes().plan_pipeline(batch)) snapshot_.restore();
}

// Throws if the update has begun, as it cannot be undone.
void StepRunner::require_unchanged(const std::string& why, int64_t step) const {
  std::vector<at::Tensor> trained = tensors_in(parts_.optimizer.state());
  if (!parts_.config.sam) {
    for (const NamedTensor& parameter : parts_.function.parameters()) {
      trained.push_back(parameter.tensor);
    }
  }
  if (!parts_.function.update().has_begun() && !(compiled_ && compiled_->has_changed(trained)))
    return;
  throw DeviceError(
      fmt::format("step {}: out of memory within the update of the weights, which are not to be "
                  "used any more; resume from the last checkpoint. {}",
                  step + 1, why));
}

void StepRunner::split(const MemoryShortage& shortage, int64_t step) {
  require_divisible(shortage, parts_.config, step);
  set_splits(2 * parts_.function.micro_batches().splits());
  why_split_ = shortage.why;
}

void StepRunner::set_splits(int64_t splits) {
  MicroBatches& micro_batches = parts_.function.micro_batches();
  if (compiled_ && splits != micro_batches.splits()) compiled_->forget();
  micro_batches.set_splits(splits);
}

}  // namespace gallop::train
