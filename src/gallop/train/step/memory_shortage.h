#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "gallop/parallel/sums.h"
#include "gallop/train/step/config.h"
#include "gallop/train/step/function.h"
#include "gallop/train/step/sharing.h"

namespace gallop::train {

/// Why a step must be repeated with smaller micro-batches.
struct MemoryShortage {
  std::string why;             ///< The allocator's message, with its rank if processes share it.
  bool of_one_sample = false;  ///< Micro-batches cannot be split further.
};

/// Throws StepDoesNotFit if the batch cannot be split further. `step` counts from 0.
void require_divisible(const MemoryShortage& shortage, const StepConfig& config, int64_t step);

/// Agreement of the processes that share a step, of which some ran out of memory.
class ShortageExchange {
 public:
  /// All must outlive this.
  ShortageExchange(const StepConfig& config, const StepSharing& sharing,
                   const StepFunction& function);

  /// A process without memory, `own`, takes part in the remaining all-reduces of its pass, the last
  /// of which notifies the others. Then all processes exchange the reasons. Throws DeviceError if
  /// the strategy does not allow it.
  MemoryShortage run(parallel::CollectivesScope& scope, const std::optional<std::string>& own,
                     bool is_one_sample, int64_t step) const;

 private:
  std::vector<parallel::PendingCollective> calls_left(const parallel::CollectivesScope& scope,
                                                      const std::string& why, int64_t step) const;
  std::string why_not_split() const;

  const StepConfig& config_;
  const StepSharing& sharing_;
  const StepFunction& function_;
};

}  // namespace gallop::train
