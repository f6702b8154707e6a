#include "gallop/train/step/memory_shortage.h"

#include <algorithm>

#include <ATen/ops/zeros.h>
#include <fmt/format.h>

#include "gallop/base/error.h"
#include "gallop/optim/gradients.h"
#include "gallop/train/out_of_memory.h"

namespace gallop::train {

void require_divisible(const MemoryShortage& shortage, const StepConfig& config, int64_t step) {
  if (const LossTraits loss = config.loss->traits();
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
                    "train.activation_checkpointing.every=1, train.precision=bf16, or a smaller "
                    "model. {}",
                    step + 1, shortage.why));
  }
}

ShortageExchange::ShortageExchange(const StepConfig& config, const StepSharing& sharing,
                                   const StepFunction& function)
    : config_(config), sharing_(sharing), function_(function) {}

MemoryShortage ShortageExchange::run(parallel::CollectivesScope& scope,
                                     const std::optional<std::string>& own, bool is_one_sample,
                                     int64_t step) const {
  parallel::Collectives& collectives = sharing_.strategy().collectives();
  // Other processes may have all-reduces in flight, too.
  const auto left =
      own ? calls_left(scope, *own, step) : std::vector<parallel::PendingCollective>();
  optim::drop_gradients(function_.parameters());  // Frees memory for the all-reduces.
  scope.drain(left);
  if (own) {
    std::vector<double> last(kFirstLoss + sharing_.losses());
    last[kMissing] = 1;
    parallel::sum_over_all(collectives, last);
  }
  sharing_.strategy().abort_sync();
  collectives.begin(parallel::Section::kStart, step + 1);  // The step will be compiled again.
  MemoryShortage shortage;
  const auto reasons = parallel::gather(collectives, own.value_or(""));
  const auto states = parallel::gather(collectives, static_cast<uint64_t>(own && is_one_sample));
  for (size_t rank = 0; rank < reasons.size(); ++rank) {
    if (reasons[rank].empty()) continue;
    if (shortage.why.empty()) {
      shortage.why = fmt::format("Rank {} of {}: {}", rank, reasons.size(), reasons[rank]);
    }
    shortage.of_one_sample = shortage.of_one_sample || states[rank] != 0;
  }
  return shortage;
}

// The collectives of a pass that this process has not started, except for the last.
std::vector<parallel::PendingCollective> ShortageExchange::calls_left(
    const parallel::CollectivesScope& scope, const std::string& why, int64_t step) const {
  const auto refuse = [&](const std::string& what) {
    throw DeviceError(fmt::format("rank {}, step {}: out of memory{}. {}",
                                  sharing_.strategy().collectives().rank(), step + 1, what, why));
  };
  if (function_.micro_batches().gathers_rows()) {
    refuse(
        "; train.loss compares all samples of a batch, which is not computed in parts: try a "
        "smaller data.batch_size, train.activation_checkpointing.every=1, or train.precision=bf16");
  }
  const auto calls = sharing_.strategy().collective_calls(
      sharing_.sums_each_micro_batch() ? function_.micro_batches().most() : 1);
  if (!calls) refuse("; " + why_not_split());
  // Counts are all-reduced before the first pass.
  const bool counts = function_.loss().counts_on_device();
  const int64_t done = scope.started() - (counts ? 1 : 0);
  const auto of_pass = static_cast<int64_t>(calls->size()) + 1;
  if (done >= of_pass * (config_.sam ? 2 : 1)) {
    refuse(" after it reported success to the other processes; resume from the last checkpoint");
  }
  std::vector<parallel::PendingCollective> left;
  if (done < 0) {
    const at::Device device = function_.parameters().front().tensor.device();
    left.push_back({.tensor = at::zeros({function_.loss().counts()},
                                        at::TensorOptions(at::kDouble).device(device))});
  }
  left.insert(left.end(), calls->begin() + std::max<int64_t>(0, done) % of_pass, calls->end());
  return left;
}

// For strategies without Strategy::collective_calls().
std::string ShortageExchange::why_not_split() const {
  if (sharing_.batch_slices() > 0) {
    return "with parallel.name=deterministic batch slices are not split further, as bits would "
           "depend on it: try train.activation_checkpointing.every=1, a smaller data.batch_size, "
           "or parallel.name=ddp";
  }
  const parallel::Strategy& strategy = sharing_.strategy();
  const char* what = "with hybrid sharding batches are not split automatically";
  if (strategy.pipeline() != nullptr) {
    what = "in a pipeline, micro-batches are not split automatically";
  } else if (sharing_.strategy().forward_group() != nullptr) {
    what = "processes that compute layers together do not split micro-batches by themselves";
  } else if (sharing_.shares_batch_norm()) {
    what = "with parallel.batch_norm=synchronized parts of batches are not split automatically";
  }
  return fmt::format("{}: set train.gradient_accumulation to {}", what,
                     2 * function_.micro_batches().most());
}

}  // namespace gallop::train
