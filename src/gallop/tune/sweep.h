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

/// What a trial runs: a recipe of Gallop, or any command.
struct RunSpec {
  std::string recipe;  ///< A recipe's name or file; empty for a command.
  /// Options of the recipe that are the same in every trial, "train.epochs" and "3".
  std::vector<std::pair<std::string, std::string>> options{};
  /// The words of a command. `{lr}` in a word stands for the value of the parameter lr, and
  /// `${envvar:HOME}` for an environment variable; a word `${args}` for `--NAME=VALUE` of all,
  /// `${args_no_hyphens}` for `NAME=VALUE`, `${args_no_boolean_flags}` for `--NAME` where the value
  /// is true and nothing where it is false, `${args_no_equals}` for the words `--NAME` and `VALUE`,
  /// `${args_append_hydra}` for `+NAME=VALUE`, `${args_override_hydra}` for `++NAME=VALUE`,
  /// `${args_json}` for all as one word of JSON, and `${args_json_file}` for a file that has this.
  std::vector<std::string> command{};
  /// In these words values are as Python writes them (True, None, ['a']), as W&B passes them, and
  /// braces that hold no parameter's name are left as they are.
  bool python_words = false;
  /// Names of nested parameters, each of which is one word of a command.
  std::vector<std::string> nested{};
  /// So many checkpoints of a recipe's trial are kept along the way for trials that begin alike,
  /// which then share its steps; 0: trials share none. Nothing where the sweep does not say.
  std::optional<int64_t> share{};
};

/// RunSpec::share where trials are to share steps and no number is given.
inline constexpr int64_t kUsualShare = 4;

std::string to_json(const RunSpec& spec);
/// The inverse. Throws DataError where the text is none.
RunSpec parse_run_spec(std::string_view text);

/// A study as its file describes it.
struct Sweep {
  StudySettings settings{};                                  ///< Its `run` is a RunSpec.
  std::vector<Point> start{};                                ///< Tried first.
  double seconds = std::numeric_limits<double>::infinity();  ///< No trial begins after them.
  int64_t workers = 0;  ///< 0: one, or as many as there are cores for.
  int64_t cores = 0;    ///< Of each trial; 0: the workers share all.
};

/// What a sweep leaves to its recipe.
struct ObjectiveDefaults {
  std::string metric{};  ///< Of a recipe's sweep without one.
  /// Whether a metric without a goal is maximized; null: accuracy and top5 are.
  std::function<bool(const std::string&)> is_maximized{};
};

/// Reads a sweep: YAML as docs/tune.md has it, or a file as W&B's sweeps have it. `name` is the
/// study's where the file gives none. Of a recipe's sweep without a metric, and without a default,
/// the settings have no objective. Throws UsageError with every mistake and its place.
Sweep parse_sweep(const TuneRegistries& registries, const std::string& yaml,
                  const std::string& file_name, const std::string& name,
                  const ObjectiveDefaults& defaults = {});

/// Parameters as a sweep writes them. Mistakes go to `problems`.
std::vector<Parameter> read_parameters(const config::Node& map, config::Problems& problems);

/// Values by the parameters' names as a point of the space; all that are active must be there.
/// Mistakes go to `problems`.
Point read_point(const Space& space, const config::Node& map, config::Problems& problems);

}  // namespace gallop::tune
