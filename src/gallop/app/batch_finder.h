#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "gallop/app/batch_trial.h"
#include "gallop/app/distributed_context.h"
#include "gallop/app/prepared_recipe.h"
#include "gallop/app/recipe.h"
#include "gallop/base/stop.h"
#include "gallop/schedule/batch_search.h"

namespace gallop::app {

/// What `find-batch` and `batch_size: auto` look for.
struct BatchQuestion {
  /// `of_recipe` names the recipe, and how noise is measured; where it gives no memory, which all
  /// processes of a host share, that is what the machine has left, or the GPU.
  BatchQuestion(BatchTrial of_recipe, const Recipe& recipe);

  BatchTrial trial;
  int64_t batch;        ///< Of the recipe: the noise is measured of parts of it.
  bool is_format_open;  ///< Precision or memory order is to be measured first.
  schedule::BatchLimits limits{.most = int64_t{1} << 40};
  std::optional<double> noise_seconds{};  ///< Noise that takes longer is not measured.
};

struct FoundBatch {
  schedule::BatchSearch search;
  std::optional<double> critical{};      ///< By the gradient noise scale.
  int64_t small = 0, big = 0;            ///< Batches that it comes from; 0 where not measured.
  std::optional<double> noise_takes{};   ///< Seconds, where that was too long.
  std::string why_too_large{};           ///< Of search.too_large.
  int64_t limit_bytes = 0, samples = 0;  ///< That there are.
  double seconds = 0;                    ///< That all took.
  std::vector<Override> format{};        ///< What the recipe left open of it, as measured.
  std::vector<MadeChoice> choices{};     ///< How that was chosen.
  double busy = 0;  ///< Of the batch that was disturbed most: MeasuredCost::busy.

  /// Whether other programs may have decided which batch seems fast.
  bool is_uncertain() const { return busy > train::MeasuredChoiceConfig().busy; }
  int64_t fastest() const { return schedule::fastest_from(search.points); }
  int64_t suggested() const { return schedule::suggested_batch(search, critical); }
};

/// Tries batches, each in a process of its own, and tells `told` of each that fits. Nothing where a
/// stop is asked for. Throws DeviceError where not one sample fits, and what a process throws.
/// All processes of a team call it, and each starts one: these train together, on their parts of
/// each batch, as the team would. All find the same.
std::optional<FoundBatch> find_batch(const BatchQuestion& question,
                                     const DistributedContext& context, const StopRequest& stop,
                                     const std::function<void(const schedule::BatchPoint&)>& told);

}  // namespace gallop::app
