// Out-of-memory handling of a step.
#include <algorithm>

#include <ATen/ops/zeros.h>
#include <fmt/format.h>

#include "gallop/base/error.h"
#include "gallop/optim/gradients.h"
#include "gallop/train/determinism.h"
#include "gallop/train/out_of_memory.h"
#include "gallop/train/pipeline_step.h"
#include "gallop/train/step_tensors.h"

namespace gallop::train {

TrainStep::Tensors TrainStep::compute_in_memory(const StepInputs& inputs, bool count_correct,
                                                int64_t step) {
  kept_.capture();
  for (;;) {
    const auto scope = sharing();
    Tensors results;
    updating_ = false;
    bool is_missing = false;  // Another process has failed.
    std::optional<std::string> full;
    try {
      full = run_in_memory([&] {
        if (pipeline_ && plan_pipeline(inputs.batch)) {
          kept_.restore();
          seed_generator(step);
        }
        results = compiled_ ? (*compiled_)(inputs.pack(), mode_of(count_correct))
                            : compute(inputs, count_correct);
      });
    } catch (const parallel::PeerFailed&) {
      is_missing = true;
    } catch (...) {
      rethrow_nondeterminism();
    }
    if (!full && !is_missing) return results;
    require_unchanged(full.value_or("another process has none"), step);
    const bool is_one_sample = micro_batches() >= inputs.rows();
    Shortage shortage{.why = full.value_or(""), .of_one_sample = is_one_sample};
    if (scope) shortage = share_shortage(*scope, full, is_one_sample, step);
    kept_.restore();
    optim::drop_gradients(parameters_);
    split_for(shortage, step);
    seed_generator(step);
  }
}

// The compiled function's mode. The offsets of batch slices, and the rows that processes gather,
// follow from the whole batch's rows, and gradients may be summed over all processes or not.
int64_t TrainStep::mode_of(bool count_correct) const {
  const int64_t gradients = batch_slices() > 0 || rows_group_ ? whole_rows_
                            : local_replicas() != nullptr     ? 1
                                                              : 0;
  return 2 * gradients + (count_correct ? 1 : 0);
}

// Throws if the update has begun, as it cannot be undone.
void TrainStep::require_unchanged(const std::string& why, int64_t step) const {
  Tensors trained;
  for (const auto& list : {config_.sam ? NamedTensors() : parameters_, optimizer_.state()}) {
    for (const auto& [name, tensor] : list) trained.push_back(tensor);
  }
  if (!updating_ && !(compiled_ && compiled_->has_changed(trained))) return;
  throw DeviceError(
      fmt::format("step {}: out of memory within the update of the weights, which are not to be "
                  "used any more; resume from the last checkpoint. {}",
                  step + 1, why));
}

// The collectives of a pass that this process has not started, except for the last.
std::vector<parallel::PendingCollective> TrainStep::calls_left(
    const parallel::CollectivesScope& scope, const std::string& why, int64_t step) const {
  const auto refuse = [&](const std::string& what) {
    throw DeviceError(fmt::format("rank {}, step {}: out of memory{}. {}",
                                  config_.strategy->collectives().rank(), step + 1, what, why));
  };
  if (rows_group_) {
    refuse(
        "; train.loss compares all samples of a batch, which is not computed in parts: try a "
        "smaller "
        "data.batch_size, train.activation_checkpointing.every=1, or train.precision=bf16");
  }
  const auto calls =
      config_.strategy->collective_calls(sums_each_micro_batch() ? micro_batches() : 1);
  if (!calls && batch_slices() > 0) {
    refuse(
        "; with parallel.name=deterministic batch slices are not split further, as bits would "
        "depend on "
        "it: try train.activation_checkpointing.every=1, a smaller data.batch_size, or "
        "parallel.name=ddp");
  } else if (!calls && pipeline_) {
    refuse(
        fmt::format("; in a pipeline, micro-batches are not split automatically: set "
                    "train.gradient_accumulation to {}",
                    2 * micro_batches()));
  } else if (!calls && config_.strategy->forward_group() != nullptr) {
    refuse(
        fmt::format("; processes that compute layers together do not split micro-batches by "
                    "themselves: set train.gradient_accumulation to {}",
                    2 * micro_batches()));
  } else if (!calls && !shares_batch_norm()) {
    refuse(
        fmt::format("; with hybrid sharding batches are not split automatically: set "
                    "train.gradient_accumulation to {}",
                    2 * micro_batches()));
  } else if (!calls) {
    refuse(fmt::format(
        "; with parallel.batch_norm=synchronized parts of batches are not split automatically: set "
        "train.gradient_accumulation to {}",
        2 * micro_batches()));
  }
  // Counts are all-reduced before the first pass.
  const int64_t before = counts_on_device_ ? 1 : 0, done = scope.started() - before;
  const auto of_pass = static_cast<int64_t>(calls->size()) + 1;
  if (done >= of_pass * (config_.sam ? 2 : 1)) {
    refuse(" after it reported success to the other processes; resume from the last checkpoint");
  }
  std::vector<parallel::PendingCollective> left;
  if (done < 0) left.push_back({.tensor = at::zeros({counts()}, shared_.options())});
  left.insert(left.end(), calls->begin() + std::max<int64_t>(0, done) % of_pass, calls->end());
  return left;
}

// A process without memory takes part in the remaining all-reduces of its pass, the last of which
// notifies the others. Then all processes exchange the reasons.
TrainStep::Shortage TrainStep::share_shortage(parallel::CollectivesScope& scope,
                                              const std::optional<std::string>& own,
                                              bool is_one_sample, int64_t step) {
  parallel::Collectives& collectives = config_.strategy->collectives();
  // Other processes may have all-reduces in flight, too.
  const auto left =
      own ? calls_left(scope, *own, step) : std::vector<parallel::PendingCollective>();
  optim::drop_gradients(parameters_);  // Frees memory for the all-reduces.
  scope.drain(left);
  if (own) {
    std::vector<double> last(kFirstLoss +
                             static_cast<size_t>(std::max<int64_t>(1, batch_slices())));
    last[kMissing] = 1;
    parallel::sum_over_all(collectives, last);
  }
  config_.strategy->abort_sync();
  collectives.begin(parallel::Section::kStart, step + 1);  // The step will be compiled again.
  Shortage shortage;
  const auto words = parallel::gather(collectives, own.value_or(""));
  const auto states = parallel::gather(collectives, static_cast<uint64_t>(own && is_one_sample));
  for (size_t rank = 0; rank < words.size(); ++rank) {
    if (words[rank].empty()) continue;
    if (shortage.why.empty()) {
      shortage.why = fmt::format("Rank {} of {}: {}", rank, words.size(), words[rank]);
    }
    shortage.of_one_sample = shortage.of_one_sample || states[rank] != 0;
  }
  return shortage;
}

void TrainStep::split_for(const Shortage& shortage, int64_t step) {
  if (const LossTraits loss = config_.loss->traits();
      loss.needs_whole_batch || loss.compares_samples) {
    throw StepDoesNotFit(fmt::format(
        "step {}: out of memory, and train.loss needs the whole batch, which cannot be "
        "computed in parts. Try a smaller data.batch_size, train.activation_checkpointing.every=1, "
        "or train.precision=bf16. {}",
        step + 1, shortage.why));
  }
  if (shortage.of_one_sample) {
    throw StepDoesNotFit(
        fmt::format("step {}: out of memory with one sample at a time. Try "
                    "train.activation_checkpointing.every=1, "
                    "train.precision=bf16, or a smaller model. {}",
                    step + 1, shortage.why));
  }
  set_splits(2 * splits_);
  why_split_ = shortage.why;
}

void TrainStep::set_splits(int64_t splits) {
  if (compiled_ && splits != splits_) compiled_->forget();
  splits_ = splits;
}

}  // namespace gallop::train
