#pragma once

#include <string>
#include <utility>
#include <vector>

#include "gallop/tune/study.h"
#include "gallop/tune/sweep.h"

namespace gallop::tune {

/// The parameters that a point has, by name, in their order: words of JSON, texts without quotes.
std::vector<std::pair<std::string, std::string>> parameter_args(const Space& space,
                                                                const Point& point);

/// The same as one JSON object.
std::string parameters_json(const Space& space, const Point& point);

/// The same for a command that reads them: with one object in it for each of those that are nested.
std::string arguments_json(const RunSpec& spec, const Space& space, const Point& point);

/// Options for 'gallop train' that make the recipe of a trial.
std::vector<std::string> recipe_options(const RunSpec& spec, const Space& space,
                                        const Point& point);

/// Whether a command's environment variables are replaced by what they hold, perhaps a secret, or
/// left as they are written.
enum class Variables { kFilled, kNamed };

/// The words of a trial that runs a command. Throws UsageError where one names a parameter or an
/// environment variable that there is not. `folder` is the trial's, or empty where it has none yet.
std::vector<std::string> command_args(const RunSpec& spec, const Space& space, const Point& point,
                                      const std::string& folder, Variables variables);

/// What is wrong with a word that is written as a macro, `${NAME}`; empty where it is one, or none.
std::string wrong_macro(const std::string& word);

/// Whether the command of a trial reads its parameters from a file, which is then to be written.
bool wants_arguments_file(const RunSpec& spec);
/// Beside a trial's folder.
std::string arguments_file(const std::string& folder);

/// What runs a trial's point again by itself, in this terminal, where `${envvar:NAME}` is still to
/// be replaced. Throws as command_args() does.
std::vector<std::string> args_to_repeat(const Study& study, const Trial& trial);

}  // namespace gallop::tune
