#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "gallop/app/command.h"
#include "gallop/app/registries.h"
#include "gallop/config/component.h"
#include "gallop/config/node.h"
#include "gallop/config/renamed_options.h"
#include "gallop/data/data_config.h"
#include "gallop/parallel/collectives.h"
#include "gallop/schedule/lr_scaling.h"
#include "gallop/schedule/scheduled_value.h"
#include "gallop/train/metrics/metric_set.h"
#include "gallop/train/test_views.h"
#include "gallop/train/train_config.h"

namespace gallop::app {

/// The `schedules:` section: scheduled values besides the learning rate.
struct SchedulesConfig {
  explicit SchedulesConfig(const config::Catalog& schedules);
  schedule::ScheduledValueConfig label_smoothing, momentum, beta2, weight_decay, dropout;
};

/// The `track:` section: additional data that a run records.
struct TrackConfig {
  bool histograms = false;
  int64_t log_samples = 16;
};

/// The `profile:` section: profiles of some steps during a run, stored in its folder.
struct ProfileConfig {
  std::string every = "never";
  int64_t steps = 5;
  std::string keep = "20";  ///< A number, or "all".

  /// Profiles of a run to keep, at most; nothing: all.
  std::optional<int64_t> most() const;
};

/// The complete configuration of a run.
struct Recipe {
  explicit Recipe(std::shared_ptr<const Registries> all);

  /// The components of the program and of the plug-ins.
  std::shared_ptr<const Registries> registries;
  std::vector<std::string> plugins;  ///< Absolute paths.
  data::DataConfig data;
  config::Component model;
  config::Component optimizer;
  config::ComponentList wrappers;  ///< Wrappers of the optimizer.
  schedule::LrScaling lr_scaling;
  config::Component schedule;
  SchedulesConfig schedules;
  train::TrainConfig train;
  config::Component loss;      ///< In the `train:` section.
  train::MetricChoice metric;  ///< In the `train:` section.
  train::TestConfig evaluate;
  config::Component strategy;  ///< Parallel strategy.
  parallel::Limits limits;
  TrackConfig track;
  ProfileConfig profile;
};

void visit(config::Visitor& visitor, SchedulesConfig& config);
void visit(config::Visitor& visitor, TrackConfig& config);
void visit(config::Visitor& visitor, ProfileConfig& config);
void visit(config::Visitor& visitor, Recipe& recipe);

/// A recipe with the origin of each value.
struct ResolvedRecipe {
  Recipe recipe;
  std::string name;      ///< "fashion-mnist", without folder and ending.
  config::Node written;  ///< The file with overrides applied and current option names.
  std::vector<config::OldName> old_names{};  ///< Deprecated names that were used.

  /// The written value of an option of a section; null if it is not set.
  const config::Node* find(const std::string& section, const std::string& option) const;
  /// Whether an option of a section is unresolved, such as "optimizer.lr: auto".
  bool is_auto(const std::string& section, const std::string& option) const;
  /// Sets an option such as "train.precision" to the value that was measured.
  void resolve(const std::string& path, const std::string& found);

  /// Makes the data path absolute, so that a run's recipe works in any working directory. A path
  /// that does not exist is unchanged.
  void make_data_path_absolute();
  /// Replaces files in `data.exclude` by the names in them, which thus belong to the run and cannot
  /// change until it is resumed. Throws DataError if one cannot be read.
  void read_excluded_names();

  /// The complete recipe as YAML.
  std::string to_yaml(bool show_origins);
};

/// Prints a warning for each deprecated name of an option.
void warn_of_old_names(const ResolvedRecipe& resolved);

/// Loads a recipe by name (built-in) or path, applies overrides, and warns of deprecated names. Its
/// components are those of `registries`, which must outlive it, and of its plug-ins. Throws
/// UsageError with every mistake.
ResolvedRecipe load_recipe(const Registries& registries, const std::string& name_or_path,
                           const std::vector<Override>& overrides);

/// The same on rank 0, which broadcasts the result; without collectives, just loads it.
ResolvedRecipe load_recipe(const Registries& registries, parallel::Collectives* collectives,
                           const std::string& name_or_path, const std::vector<Override>& overrides);

/// The same without warnings, for a recipe that was loaded before.
ResolvedRecipe read_recipe(const Registries& registries, const std::string& name_or_path,
                           const std::vector<Override>& overrides);
ResolvedRecipe read_recipe(const Registries& registries, parallel::Collectives* collectives,
                           const std::string& name_or_path, const std::vector<Override>& overrides);

/// Serializes a recipe for other processes, and parses it below.
std::string to_text(ResolvedRecipe& resolved);
ResolvedRecipe from_text(const Registries& registries, const std::string& text);

/// Whether a recipe's plug-ins are loaded, or recipes with plug-ins that `registries` lack are
/// rejected.
enum class PluginUse { kLoad, kRefuse };

/// The same for YAML text; `file_name` is used in messages, and plug-in paths are relative to its
/// folder.
ResolvedRecipe parse_recipe(const Registries& registries, const std::string& yaml,
                            const std::string& file_name, const std::vector<Override>& overrides,
                            PluginUse use = PluginUse::kLoad);

}  // namespace gallop::app
