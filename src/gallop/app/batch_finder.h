#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "gallop/app/batch_trial.h"
#include "gallop/app/distributed_context.h"
#include "gallop/app/recipe.h"
#include "gallop/app/session.h"
#include "gallop/base/stop.h"
#include "gallop/schedule/batch_search.h"

namespace gallop::app {

/// The input of a search by `find-batch` or `batch_size: auto`.
struct BatchQuestion {
  /// `of_recipe` names the recipe, and how noise is measured. If it gives no memory limit, which
  /// all processes of a host share, the limit is the available memory of the machine or the GPU.
  BatchQuestion(BatchTrial of_recipe, const Recipe& recipe);

  BatchTrial trial;
  int64_t batch;        ///< The recipe's batch size: noise is measured from fractions of it.
  bool is_format_open;  ///< Precision or memory format must be measured first.
  schedule::BatchLimits limits{.most = int64_t{1} << 40};
  std::optional<double> noise_seconds{};  ///< Noise that takes longer is not measured.
};

/// Whether the gradient noise scale can be measured: replicas that are trained separately do not
/// sum their gradients.
bool has_noise_scale(const Recipe& recipe, const DistributedContext& context);

struct FoundBatch {
  schedule::BatchSearch search;
  std::optional<double> critical{};      ///< By the gradient noise scale.
  int64_t small = 0, big = 0;            ///< Batch sizes from which it was computed; 0 if not
                                         ///< measured.
  std::optional<double> noise_takes{};   ///< Estimated seconds, if that was too long.
  std::string why_too_large{};           ///< Of search.too_large.
  int64_t limit_bytes = 0, samples = 0;  ///< Available memory and samples.
  double seconds = 0;                    ///< Of the whole search.
  std::vector<Override> format{};        ///< Precision and memory format that the recipe leaves
                                         ///< open, as measured.
  std::vector<MadeChoice> choices{};     ///< How that was chosen.
  double busy = 0;                       ///< The maximum of MeasuredCost::busy over all batches.

  /// Whether other programs may have affected which batch size seems fast.
  bool is_uncertain() const { return busy > train::MeasuredChoiceConfig().busy; }
  int64_t fastest() const { return schedule::fastest_from(search.points); }
  int64_t suggested() const { return schedule::suggested_batch(search, critical); }
};

/// Measures batch sizes, each in its own child process, and calls `on_point` for each that fits.
/// Returns nothing after a stop request. Throws DeviceError if a single sample does not fit, and
/// the errors of children. All processes of a group must call it, and each starts one child: the
/// children train together, on their slices of each batch, as the group would. All return the same
/// result.
std::optional<FoundBatch> find_batch(
    const BatchQuestion& question, const DistributedContext& context, const StopRequest& stop,
    const std::function<void(const schedule::BatchPoint&)>& on_point);

}  // namespace gallop::app
