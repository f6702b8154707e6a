#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "gallop/config/component.h"
#include "gallop/data/augment.h"
#include "gallop/data/batch_transform.h"
#include "gallop/data/data_module.h"
#include "gallop/model/model.h"
#include "gallop/optim/optimizer.h"
#include "gallop/optim/wrapper.h"
#include "gallop/schedule/schedule.h"
#include "gallop/train/losses/loss.h"
#include "gallop/train/metrics/metric.h"
#include "gallop/train/tasks/task.h"
#include "gallop/tune/registries.h"

namespace gallop::parallel {
class Collectives;
class Strategy;
struct ModelTensors;
using StrategyRegistry = config::Registry<Strategy, Collectives&, const ModelTensors&>;
}  // namespace gallop::parallel

namespace gallop {

/// A loaded plug-in.
struct Plugin {
  std::filesystem::path file;  ///< As given, but absolute.
  std::filesystem::path path;  ///< With symbolic links resolved.
  std::string name;

  /// Whether it is the same file, by any path.
  bool is_of(const std::filesystem::path& other) const;
};

/// All components that recipes and sweeps can select by name, initially the built-in ones. Must
/// outlive everything that is created from it. A copy has the same components, and may get
/// additional ones.
struct Registries {
  /// The built-in components. Those added later have the origin "the program".
  Registries();

  data::DataModuleRegistry data_modules = data::built_in_data_modules();
  data::AugmentationRegistry augmentations = data::built_in_augmentations();
  data::BatchTransformRegistry batch_transforms = data::built_in_batch_transforms();
  model::ModelRegistry models = model::built_in_models();  ///< And layers.
  optim::OptimizerRegistry optimizers = optim::built_in_optimizers();
  optim::WrapperRegistry wrappers = optim::built_in_wrappers();
  train::LossRegistry losses = train::built_in_losses();
  schedule::ScheduleRegistry schedules = schedule::built_in_schedules();
  parallel::StrategyRegistry strategies;
  train::MetricRegistry metrics = train::built_in_metrics();
  train::TaskTable tasks = train::built_in_tasks();
  tune::TuneRegistries tune{};
  std::vector<Plugin> plugins{};  ///< In the order in which they were loaded.

  /// Sets the origin of components added from now on, for messages.
  void set_origin(const std::string& origin);
};

}  // namespace gallop
