#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "gallop/app/command.h"
#include "gallop/app/console.h"
#include "gallop/app/distributed_context.h"
#include "gallop/app/registries.h"
#include "gallop/app/signals.h"
#include "gallop/base/file.h"
#include "gallop/base/stop.h"
#include "gallop/track/mlflow/push.h"
#include "gallop/train/observer.h"
#include "gallop/train/train_config.h"

namespace gallop::app {

/// Where a run is kept.
struct RunPlace {
  std::string runs = "runs";
  std::string name;              ///< Empty: the recipe's name and a number.
  bool resume_if_there = false;  ///< Continue a run of this name instead of refusing it.
  /// A run from whose newest checkpoint it begins, by name or folder; empty: from the beginning.
  std::string from;
  train::Interval until{};  ///< Where to stop before the end; kNever: nowhere.
  /// Begin with the checkpoint of a run beside it that began alike, and keep some for others: at so
  /// many evaluations, and where the schedule begins to change. Nothing: do neither.
  std::optional<int64_t> share{};
  bool allow_changed_data = false;  ///< Resume though files of the data have changed.
  /// Whether copies of this program can try batch sizes for `data.batch_size: auto`: they are
  /// started as `gallop find-batch`.
  bool can_probe = true;
  std::optional<track::mlflow::Target> mlflow{};  ///< A server that is sent the run as it trains.
};

/// A run that is ready to train: its folder is locked by this process, or by the first of those
/// that train together.
class TrainingRun {
 public:
  virtual ~TrainingRun() = default;
  /// From its first step on `signals` save and stop it; before, they end the process.
  virtual train::Outcome train(ConsoleStyle style, SignalGuard& signals) = 0;
};

/// Throws UsageError, with what to do, where there is a run in the folder `run`.
void refuse_existing_run(const fs::path& run);

/// Prepares data and model of a recipe, for which it finds a batch where that is left open, and
/// makes the run's folder; nothing is made where the recipe or the data are wrong. With
/// `resume_if_there` it may return what resume_run() does. Null where a stop is asked for before.
/// Throws UsageError where the name is taken. All processes of a team call it; what the first of
/// them says counts.
std::unique_ptr<TrainingRun> start_run(const Registries& registries, const RunPlace& place,
                                       const std::string& recipe,
                                       const std::vector<Override>& overrides,
                                       const StopRequest& stop, const DistributedContext& context);

/// Continues a run from its newest checkpoint, or from the beginning where it has none. A damaged
/// checkpoint is a DataError that names the file and the checkpoint before it. Null where the run
/// is finished already, which is said. Whatever it throws, nothing in the run's folder was changed.
std::unique_ptr<TrainingRun> resume_run(const Registries& registries, const RunPlace& place,
                                        const std::string& name,
                                        const std::vector<Override>& overrides,
                                        const StopRequest& stop, const DistributedContext& context);

}  // namespace gallop::app
