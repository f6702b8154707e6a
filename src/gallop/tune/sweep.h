#pragma once

#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "gallop/config/node.h"
#include "gallop/tune/registries.h"
#include "gallop/tune/study.h"

namespace gallop::tune {

/// The program of a trial: a Gallop recipe, or any command.
struct RunSpec {
  std::string recipe;  ///< Name or file of a recipe; empty for a command.
  /// Fixed options of the recipe, such as "train.epochs" and "3".
  std::vector<std::pair<std::string, std::string>> options{};
  /// The arguments of a command. In an argument, `{lr}` is replaced by the value of the parameter
  /// lr, and `${envvar:HOME}` by an environment variable. The argument `${args}` is replaced by
  /// `--NAME=VALUE` for each parameter, `${args_no_hyphens}` by `NAME=VALUE`,
  /// `${args_no_boolean_flags}` by `--NAME` for true and nothing for false, `${args_no_equals}` by
  /// the arguments `--NAME` and `VALUE`, `${args_append_hydra}` by `+NAME=VALUE`,
  /// `${args_override_hydra}` by `++NAME=VALUE`, `${args_json}` by all parameters as one JSON
  /// argument, and `${args_json_file}` by the path of a file with that JSON.
  std::vector<std::string> command{};
  /// Formats values as Python does (True, None, ['a']), as W&B passes them, and leaves braces
  /// without a parameter's name unchanged.
  bool python_words = false;
  /// Names of nested parameters, each of which is one argument of a command.
  std::vector<std::string> nested{};
  /// The number of checkpoints that a recipe's trial keeps for trials with the same prefix of
  /// training, which then share its steps; 0: no sharing. Nothing if the sweep does not specify it.
  std::optional<int64_t> share{};
};

/// The default of RunSpec::share if sharing is enabled without a number.
inline constexpr int64_t kUsualShare = 4;

std::string to_json(const RunSpec& spec);
/// Parses a run specification. Throws DataError if the text is invalid.
RunSpec parse_run_spec(std::string_view text);

/// A study as defined by its sweep file.
struct Sweep {
  StudySettings settings{};    ///< `run` is a RunSpec as JSON.
  std::vector<Point> start{};  ///< Points to try first.
  /// Time budget: no trial is started after it.
  double seconds = std::numeric_limits<double>::infinity();
  int64_t workers = 0;  ///< 0: one, or as many as the cores allow.
  int64_t cores = 0;    ///< Per trial; 0: the workers share all cores.
};

/// Defaults that a recipe provides.
struct ObjectiveDefaults {
  std::string metric{};  ///< For a recipe's sweep without a metric.
  /// Whether a metric without a goal is maximized; null: accuracy and top5 are.
  std::function<bool(const std::string&)> is_maximized{};
};

/// Parses a sweep: YAML as described in docs/tune.md, or a W&B sweep file. `name` is the default
/// name of the study. For a recipe's sweep without a metric and without a default, the settings
/// have no objective. Throws UsageError with every mistake and its position.
Sweep parse_sweep(const TuneRegistries& registries, const std::string& yaml,
                  const std::string& file_name, const std::string& name,
                  const ObjectiveDefaults& defaults = {});

/// The program whose sweep file it is. Values of those of W&B are those of Python: 1.0 is not 1.
enum class SweepFormat { kGallop, kWandb };

/// Parses the parameters of a sweep. Mistakes are added to `problems`.
std::vector<Parameter> read_parameters(const config::Node& map, SweepFormat format,
                                       config::Problems& problems);

/// Parses a point from a map by parameter name; all active parameters must be given. Mistakes are
/// added to `problems`.
Point read_point(const Space& space, const config::Node& map, SweepFormat format,
                 config::Problems& problems);

}  // namespace gallop::tune
