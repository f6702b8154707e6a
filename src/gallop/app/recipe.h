#pragma once

#include <cstdint>
#include <memory>
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

/// The `schedules:` section: values besides the learning rate that change along a run.
struct SchedulesConfig {
  explicit SchedulesConfig(const config::Catalog& schedules);
  schedule::ScheduledValueConfig label_smoothing, momentum, beta2, weight_decay, dropout;
};

/// What a run keeps besides.
struct TrackConfig {
  bool histograms = false;
  int64_t log_samples = 16;
};

/// Everything that decides a run, as written in a recipe.
struct Recipe {
  explicit Recipe(std::shared_ptr<const Registries> all);

  /// What its components are of: those of the program, and of the plug-ins.
  std::shared_ptr<const Registries> registries;
  std::vector<std::string> plugins;  ///< Files, by absolute paths.
  data::DataConfig data;
  config::Component model;
  config::Component optimizer;
  config::ComponentList wrappers;  ///< What stands around the optimizer.
  schedule::LrScaling lr_scaling;
  config::Component schedule;
  SchedulesConfig schedules;
  train::TrainConfig train;
  config::Component loss;      ///< Of the `train:` section.
  train::MetricChoice metric;  ///< In its section `train`.
  train::TestConfig evaluate;
  config::Component strategy;  ///< How several processes share the work.
  parallel::Limits limits;
  TrackConfig track;
};

void visit(config::Visitor& visitor, SchedulesConfig& config);
void visit(config::Visitor& visitor, TrackConfig& config);
void visit(config::Visitor& visitor, Recipe& recipe);

/// A recipe and where each of its values comes from.
struct ResolvedRecipe {
  Recipe recipe;
  std::string name;      ///< "fashion-mnist", without folder and ending.
  config::Node written;  ///< The file with the overrides in place, and options' current names.
  std::vector<config::OldName> old_names{};  ///< Where it was written with others.

  /// What is written for an option of a section; null where nothing is.
  const config::Node* find(const std::string& section, const std::string& option) const;
  /// Whether the option of a section is left open, as in "optimizer.lr: auto".
  bool is_auto(const std::string& section, const std::string& option) const;
  /// Puts what was measured in the place of an option, "train.precision".
  void resolve(const std::string& path, const std::string& found);

  /// So that the recipe of a run finds its data from every folder. A path that leads nowhere from
  /// the present one stays as it is.
  void make_data_path_absolute();

  /// The recipe in full, as YAML.
  std::string to_yaml(bool show_origins);
};

/// Prints a warning for each deprecated name of an option.
void warn_of_old_names(const ResolvedRecipe& resolved);

/// Reads a recipe by name (from those that come with Gallop) or by path, applies overrides, and
/// warns of deprecated names. Its components are those of `registries`, which must outlive it, and
/// of the plug-ins that it names. Throws UsageError with every mistake.
ResolvedRecipe load_recipe(const Registries& registries, const std::string& name_or_path,
                           const std::vector<Override>& overrides);

/// The same by the first of several processes, for all of them; without collectives just does it.
ResolvedRecipe load_recipe(const Registries& registries, parallel::Collectives* collectives,
                           const std::string& name_or_path, const std::vector<Override>& overrides);

/// Both without warnings, for a recipe that was loaded before.
ResolvedRecipe read_recipe(const Registries& registries, const std::string& name_or_path,
                           const std::vector<Override>& overrides);
ResolvedRecipe read_recipe(const Registries& registries, parallel::Collectives* collectives,
                           const std::string& name_or_path, const std::vector<Override>& overrides);

/// A recipe as one process hands it to others, and as they take it.
std::string to_text(ResolvedRecipe& resolved);
ResolvedRecipe from_text(const Registries& registries, const std::string& text);

/// Whether the plug-ins that a recipe names are loaded, or it is refused where it names others than
/// `registries` have.
enum class PluginUse { kLoad, kRefuse };

/// The same for YAML text; `file_name` stands in messages, and paths of plug-ins are relative to
/// its folder.
ResolvedRecipe parse_recipe(const Registries& registries, const std::string& yaml,
                            const std::string& file_name, const std::vector<Override>& overrides,
                            PluginUse use = PluginUse::kLoad);

}  // namespace gallop::app
